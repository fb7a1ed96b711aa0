package metrics
import ("testing";"net/http/httptest";"log/slog";"github.com/soloist-dev/soloist/internal/elector")
func BenchmarkScrape(b *testing.B) {
	r := New("dev")
	r.Elections(nil, &fixed{state: elector.State{Lock: "a", Phase: elector.Unknown, Reason: elector.Starting}})
	h := r.Handler(slog.New(slog.DiscardHandler))
	b.ReportAllocs()
	var n int
	for b.Loop() { w := httptest.NewRecorder(); h.ServeHTTP(w, httptest.NewRequest("GET","/",nil)); n = w.Body.Len() }
	b.ReportMetric(float64(n), "bytes")
}
