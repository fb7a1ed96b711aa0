// Package redistest runs a real Redis for tests, and breaks the way to it on purpose.
//
// [Start] runs redis-server (or valkey-server) for one test. Nothing is ever
// skipped: without the binary the test fails and says what to install.
//
// [NewProxy] puts a proxy between a client and that server. It understands the
// protocol, so a test can say what bytes cannot: "run the third release, and lose
// its answer", "let this request arrive after that one". Each fault is a [Rule]
// that tells when it has struck, so that no test has to sleep.
//
//	redistest.CheckLeaks(t)
//	s := redistest.Start(t)
//	p := redistest.NewProxy(t, s)
//	cut := p.On(redistest.Script(releaseLua), redistest.CutReply(), 1)
//	go client(p.URL()).Release()
//	cut.Wait(1) // The server has released; the client does not know it.
//
// [CheckLeaks] fails a test that leaves goroutines behind.
//
// Everything is safe for concurrent use and in parallel tests, and ends with the
// test that started it. Where a comment says "fails the test", the call goes on
// to return; where it says "ends the test", it must be made by the test's own
// goroutine.
package redistest
