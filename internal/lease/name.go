package lease

import (
	"errors"
	"strings"
)

var errName = errors.New("must be 1 to 200 of a-z 0-9 - . _ / and begin and end with a letter or digit")

// CheckName judges the name of a lock: 1 to 200 bytes of lower-case letters a to z, digits,
// - . _ and /, of which the first and the last are a letter or a digit.
func CheckName(name string) error {
	alnum := func(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }
	if name == "" || len(name) > 200 || !alnum(name[0]) || !alnum(name[len(name)-1]) {
		return errName
	}
	for i := range len(name) {
		if !alnum(name[i]) && strings.IndexByte("-._/", name[i]) < 0 {
			return errName
		}
	}
	return nil
}
