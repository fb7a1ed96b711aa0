package tasks

import (
	"encoding/json"
	"errors"
	"net/http"
)

// maxBody is far above what a task needs.
const maxBody = 4 << 10

// NewHandler serves s:
//
//	POST /tasks       {"city_id":1,"fence":7,"worker":"pod-a"}  201 the task, 409 the refusal, 400
//	GET  /tasks       200 the record
//	GET  /tasks/next  200 {"next":2}
//	GET  /healthz     200
func NewHandler(s *Store) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /tasks", func(w http.ResponseWriter, r *http.Request) {
		var t Task
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&t); err != nil {
			reply(w, http.StatusBadRequest, failure{"invalid", err.Error()})
			return
		}
		if t.CityID < 1 || t.Fence < 1 || t.Worker == "" {
			reply(w, http.StatusBadRequest, failure{"invalid", "city_id and fence must be at least 1, and worker be named"})
			return
		}
		t, err := s.Add(t)
		if refusal, ok := errors.AsType[*Refusal](err); ok {
			reply(w, http.StatusConflict, struct {
				failure
				*Refusal
			}{failure{refusal.Reason, err.Error()}, refusal})
			return
		}
		reply(w, http.StatusCreated, t)
	})
	mux.HandleFunc("GET /tasks", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, s.Record())
	})
	mux.HandleFunc("GET /tasks/next", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, next{s.Next()})
	})
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	return mux
}

// failure is the body of every answer that is an error.
type failure struct {
	Code    string `json:"error"`
	Message string `json:"message"`
}

type next struct {
	Next int64 `json:"next"`
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that has gone needs no answer
}
