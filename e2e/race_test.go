//go:build race

package e2e

// The programs are built with the race detector exactly if the test is.
var raceFlag = []string{"-race"}
