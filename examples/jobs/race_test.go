//go:build race

package jobs

func init() { raceFlag = []string{"-race"} }
