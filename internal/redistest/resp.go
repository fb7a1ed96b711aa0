package redistest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

const (
	maxLine  = 1 << 20 // bytes of a line
	maxBulk  = 1 << 29 // bytes of a string, as in Redis
	maxCount = 1 << 30 // elements of an aggregate
	maxDepth = 128     // aggregates within one another
)

// errProtocol tells bytes that are not RESP from a connection that has ended.
var errProtocol = errors.New("not RESP")

// An Error is an error that the server answered, without the leading "-".
type Error string

func (e Error) Error() string { return string(e) }

// A message is one value of RESP2 or RESP3, and the bytes it came as.
type message struct {
	kind  byte   // its first byte; attributes before it do not count
	value any    // see reader.value
	raw   []byte // with the attributes
}

// A reader reads messages. It reserves memory for what has arrived, never for what
// a header announces.
type reader struct {
	br  *bufio.Reader
	raw []byte // of the message being read
}

func newReader(r io.Reader) *reader { return &reader{br: bufio.NewReader(r)} }

// next blocks until it has read a whole message. Bytes that are none give an
// errProtocol, after which the reader is of no more use.
func (r *reader) next() (message, error) {
	r.raw = nil
	kind, value, err := r.value(0)
	return message{kind, value, r.raw}, err
}

// command blocks until it has read a whole request, which is an array of strings.
func (r *reader) command() (args []string, raw []byte, err error) {
	m, err := r.next()
	if err != nil {
		return nil, nil, err
	}
	list, ok := m.value.([]any)
	ok = ok && m.kind == '*'
	for _, v := range list {
		s, isString := v.(string)
		args, ok = append(args, s), ok && isString
	}
	if !ok {
		return nil, nil, fmt.Errorf("%w: request %.60q", errProtocol, m.raw)
	}
	return args, m.raw, nil
}

// value reads one value: a nil, string, int64, float64, bool, Error, or []any. Maps
// are flat lists of keys and values, as in RESP2; big numbers are strings.
func (r *reader) value(depth int) (kind byte, value any, err error) {
	line, err := r.line()
	if err != nil {
		return 0, nil, err
	}
	if len(line) == 0 || depth > maxDepth {
		return 0, nil, fmt.Errorf("%w: empty line, or too deep", errProtocol)
	}
	kind, text := line[0], string(line[1:])
	switch kind {
	case '+', '(':
		return kind, text, nil
	case '-':
		return kind, Error(text), nil
	case ':':
		value, err = strconv.ParseInt(text, 10, 64)
	case ',':
		value, err = strconv.ParseFloat(text, 64)
	case '#':
		value = text == "t"
		if text != "t" && text != "f" {
			err = errProtocol
		}
	case '_':
		if text != "" {
			err = errProtocol
		}
	case '$', '!', '=':
		value, err = r.bulk(kind, text)
	case '*', '%', '~', '>', '|':
		value, err = r.list(kind, text, depth)
		if kind == '|' && err == nil { // A value follows its attributes.
			return r.value(depth + 1)
		}
	default:
		err = errProtocol
	}
	if _, bad := errors.AsType[*strconv.NumError](err); bad || errors.Is(err, errProtocol) {
		err = fmt.Errorf("%w: %.60q", errProtocol, line)
	}
	return kind, value, err
}

// length reads the n of a header; null is for the -1 of RESP2.
func length(text string, most int) (n int, null bool, err error) {
	n, err = strconv.Atoi(text)
	if err != nil || n < -1 || n > most {
		return 0, false, errProtocol
	}
	return n, n == -1, nil
}

func (r *reader) bulk(kind byte, header string) (any, error) {
	n, null, err := length(header, maxBulk)
	if null && kind == '$' {
		return nil, nil
	}
	if err != nil || null {
		return nil, errProtocol
	}
	from := len(r.raw)
	buf := bytes.NewBuffer(r.raw)
	_, err = io.CopyN(buf, r.br, int64(n)+2)
	r.raw = buf.Bytes()
	if err != nil {
		return nil, err
	}
	text, ok := bytes.CutSuffix(r.raw[from:], []byte("\r\n"))
	if kind == '=' && ok { // three letters for the format and a colon
		ok = len(text) >= 4 && text[3] == ':'
		text = text[min(4, len(text)):]
	}
	if !ok {
		return nil, errProtocol
	}
	if kind == '!' {
		return Error(text), nil
	}
	return string(text), nil
}

func (r *reader) list(kind byte, header string, depth int) (any, error) {
	n, null, err := length(header, maxCount)
	if null && kind == '*' {
		return nil, nil
	}
	if err != nil || null {
		return nil, errProtocol
	}
	if kind == '%' || kind == '|' {
		n *= 2
	}
	list := []any{}
	for range n {
		_, v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// line reads a line and returns it without its end. It is valid until the next call.
func (r *reader) line() ([]byte, error) {
	from := len(r.raw)
	for {
		part, err := r.br.ReadSlice('\n')
		r.raw = append(r.raw, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		if len(r.raw)-from > maxLine {
			return nil, fmt.Errorf("%w: line too long", errProtocol)
		}
	}
	line, ok := bytes.CutSuffix(r.raw[from:], []byte("\r\n"))
	if !ok || bytes.IndexByte(line, '\r') >= 0 {
		return nil, fmt.Errorf("%w: %.60q", errProtocol, line)
	}
	return line, nil
}

// appendCommand appends a request to b.
func appendCommand(b []byte, args []string) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(args))
	for _, arg := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return b
}
