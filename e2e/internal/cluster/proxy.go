package cluster

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
)

var serving = regexp.MustCompile(`^Starting to serve on (127\.0\.0\.1:\d+)`)

// Get returns what the API server has at a path. It costs a hundredth of a kubectl, so it is for what is asked again
// and again: a node that is busy with questions has no time for what is asked about.
func (c *Cluster) Get(path string) ([]byte, error) {
	c.t.Helper()
	if c.proxy == "" {
		c.proxy = c.serve("proxy", serving, "proxy", "--port=0")
	}
	ctx, cancel := c.context()
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.proxy+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, resp.Status, body)
	}
	return body, err
}
