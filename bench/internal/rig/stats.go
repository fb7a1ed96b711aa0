package rig

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Samples are durations of one kind.
type Samples []time.Duration

// Quantile returns the smallest sample that at least the share q of them does not
// exceed; 0 of no samples.
func (s Samples) Quantile(q float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	i := int(q*float64(len(sorted)) + 0.999999)
	return sorted[min(max(i, 1), len(sorted))-1]
}

// Max returns the greatest sample.
func (s Samples) Max() time.Duration { return s.Quantile(1) }

// Median returns the middle one, or the mean of the middle two.
func Median[T cmp.Ordered](values []T, mean func(a, b T) T) T {
	var zero T
	if len(values) == 0 {
		return zero
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return mean(sorted[n/2-1], sorted[n/2])
}

// MedianFloat is the median of numbers.
func MedianFloat(v []float64) float64 {
	return Median(v, func(a, b float64) float64 { return (a + b) / 2 })
}

// MedianOf applies f to each run and returns the median of what it gives.
func MedianOf(runs []Samples, f func(Samples) time.Duration) time.Duration {
	var values []time.Duration
	for _, r := range runs {
		values = append(values, f(r))
	}
	return Median(values, func(a, b time.Duration) time.Duration { return (a + b) / 2 })
}

// Pool joins the samples of several runs.
func Pool(runs []Samples) Samples { return slices.Concat(runs...) }

// Ms formats a duration as milliseconds with three significant digits.
func Ms(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms < 10:
		return fmt.Sprintf("%.2f ms", ms)
	case ms < 100:
		return fmt.Sprintf("%.1f ms", ms)
	default:
		return fmt.Sprintf("%.0f ms", ms)
	}
}

// Rate formats a rate, in thousands where it is large.
func Rate(perSecond float64) string {
	switch {
	case perSecond >= 10000:
		return fmt.Sprintf("%.1fk", perSecond/1000)
	case perSecond >= 100:
		return fmt.Sprintf("%.0f", perSecond)
	default:
		return fmt.Sprintf("%.1f", perSecond)
	}
}

// Times formats a ratio.
func Times(a, b float64) string {
	if b == 0 {
		return "-"
	}
	r := a / b
	switch {
	case r < 10:
		return fmt.Sprintf("%.2f×", r)
	default:
		return fmt.Sprintf("%.0f×", r)
	}
}
