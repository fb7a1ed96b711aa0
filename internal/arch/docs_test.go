package arch

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// What the track record names exists.
func TestTrackRecord(t *testing.T) {
	var code strings.Builder
	files(t, ".go", func(_ string, content []byte) { code.Write(content) })
	doc, err := fs.ReadFile(root, "docs/track-record.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test\\w+)`").FindAllSubmatch(doc, -1)
	if len(named) < 40 {
		t.Errorf("%d tests named", len(named))
	}
	for _, m := range named {
		if !strings.Contains(code.String(), "func "+string(m[1])+"(") {
			t.Errorf("docs/track-record.md names %s, which does not exist", m[1])
		}
	}
}
