package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// CPUTime returns how long the threads of a process have run, by the scheduler's own
// count. Threads that have ended are not in it.
func CPUTime(pid int) time.Duration {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	var total time.Duration
	for _, f := range files {
		text, _ := os.ReadFile(f)
		run, _, _ := strings.Cut(string(text), " ")
		ns, _ := strconv.ParseInt(run, 10, 64)
		total += time.Duration(ns)
	}
	return total
}

// Memory returns a line of a process' status, such as VmRSS, in MB (10⁶ bytes).
func Memory(pid int, name string) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			kb, _ := strconv.Atoi(strings.Fields(value)[0])
			return fmt.Sprintf("%.1f MB", float64(kb)*1024/1e6)
		}
	}
	return "unknown"
}
