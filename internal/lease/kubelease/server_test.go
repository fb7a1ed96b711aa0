package kubelease

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// server is what an API server does with Leases, in memory: versions, conflicts, uids as
// preconditions, PUTs that create, watches that begin with the state. It is made in a
// bubble; requests come by wires.
type server struct {
	t *testing.T

	mu      sync.Mutex
	version uint64
	uids    int
	objects map[string]*unstructured.Unstructured
	streams map[*stream]bool
	refuses map[string]reply // by method, or WATCH
}

func newServer(t *testing.T) *server {
	return &server{
		t: t, version: 41,
		objects: map[string]*unstructured.Unstructured{}, streams: map[*stream]bool{}, refuses: map[string]reply{},
	}
}

// reply is a whole answer, or a stream's beginning.
type reply struct {
	code   int
	body   []byte
	date   time.Time
	stream *stream
}

func status(code int, reason metav1.StatusReason) reply {
	b, _ := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   "Failure", Reason: reason, Code: int32(code), Message: string(reason),
	})
	return reply{code: code, body: b}
}

func (s *server) handle(method, name string, watch bool, body []byte) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.answer(method, name, watch, body)
	r.date = time.Now()
	return r
}

func (s *server) answer(method, name string, watch bool, body []byte) reply {
	if watch {
		method = "WATCH"
	}
	if r, ok := s.refuses[method]; ok {
		return r
	}
	if watch {
		st := &stream{name: name, more: make(chan struct{}, 1), closed: make(chan struct{})}
		s.streams[st] = true
		if obj := s.objects[name]; obj != nil {
			st.send("ADDED", obj)
		}
		return reply{code: 200, stream: st}
	}
	var obj unstructured.Unstructured
	if len(body) > 0 {
		if err := obj.UnmarshalJSON(body); err != nil {
			return status(400, metav1.StatusReasonBadRequest)
		}
		name = obj.GetName()
	}
	old := s.objects[name]
	switch {
	case method == "GET" && old == nil:
		return status(404, metav1.StatusReasonNotFound)
	case method == "GET":
		return okay(200, old)
	case method == "POST" && old != nil:
		return status(409, metav1.StatusReasonAlreadyExists)
	case method == "POST", old == nil && obj.GetUID() == "": // a PUT may create a Lease
		s.uids++
		obj.SetUID(types.UID("uid-" + strconv.Itoa(s.uids)))
		obj.SetCreationTimestamp(metav1.NewTime(time.Now()))
		return okay(201, s.store("ADDED", &obj))
	case old == nil || obj.GetUID() != "" && obj.GetUID() != old.GetUID():
		return status(409, metav1.StatusReasonConflict)
	case obj.GetResourceVersion() == "":
		return status(422, metav1.StatusReasonInvalid)
	case obj.GetResourceVersion() != old.GetResourceVersion():
		return status(409, metav1.StatusReasonConflict)
	case reflect.DeepEqual(obj.Object, old.Object):
		return okay(200, old)
	}
	obj.SetUID(old.GetUID())
	return okay(200, s.store("MODIFIED", &obj))
}

func okay(code int, obj *unstructured.Unstructured) reply {
	b, _ := obj.MarshalJSON() // was JSON
	return reply{code: code, body: b}
}

// store keeps obj and tells the watches.
func (s *server) store(event string, obj *unstructured.Unstructured) *unstructured.Unstructured {
	s.version++
	obj.SetResourceVersion(strconv.FormatUint(s.version, 10))
	if event == "DELETED" {
		delete(s.objects, obj.GetName())
	} else {
		s.objects[obj.GetName()] = obj
	}
	for st := range s.streams {
		if st.name == obj.GetName() {
			st.send(event, obj)
		}
	}
	return obj
}

// get returns the object as it is.
func (s *server) get(name string) record {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[name] == nil {
		s.t.Fatalf("no Lease %s", name)
	}
	return decode(s.objects[name].DeepCopy(), time.Hour)
}

// change lets somebody else write; nil deletes.
func (s *server) change(name string, change func(*unstructured.Unstructured)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	obj := s.objects[name].DeepCopy()
	if change == nil {
		s.store("DELETED", obj)
		return
	}
	change(obj)
	s.store("MODIFIED", obj)
}

// refuse answers a method so from now on.
func (s *server) refuse(method string, code int, reason metav1.StatusReason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuses[method] = status(code, reason)
}

// endWatches closes all watches, as a server does that restarts.
func (s *server) endWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for st := range s.streams {
		st.Close()
	}
	clear(s.streams)
}

// stream is the body of a watch.
type stream struct {
	name   string
	more   chan struct{}
	closed chan struct{}
	once   sync.Once

	mu   sync.Mutex
	deaf bool // what is sent is lost
	buf  bytes.Buffer
}

func (st *stream) send(event string, obj *unstructured.Unstructured) {
	b, _ := obj.MarshalJSON() // was JSON
	frame, _ := json.Marshal(map[string]any{"type": event, "object": json.RawMessage(b)})
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.deaf {
		return
	}
	st.buf.Write(append(frame, '\n'))
	select {
	case st.more <- struct{}{}:
	default:
	}
}

func (st *stream) Read(p []byte) (int, error) {
	for {
		st.mu.Lock()
		n, _ := st.buf.Read(p)
		st.mu.Unlock()
		if n > 0 {
			return n, nil
		}
		select {
		case <-st.more:
		case <-st.closed:
			return 0, io.EOF
		}
	}
}

func (st *stream) Close() error {
	st.once.Do(func() { close(st.closed) })
	return nil
}

// request names what r asks for, and the Lease that it is about.
func request(r *http.Request, body []byte) (op, name string) {
	if r.URL.Query().Get("watch") != "" {
		name, _ = strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
		return "WATCH", name
	}
	if r.Method == http.MethodPost {
		var obj unstructured.Unstructured
		_ = obj.UnmarshalJSON(body) // then the server says so
		return r.Method, obj.GetName()
	}
	return r.Method, r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
}
