package telemetry

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Register registers c and returns it, or the collector of the same description
// that is registered already: what a process does several times, one after another
// or at once, counts together. A nil reg registers nothing. It panics on a collector
// that clashes with another, which is a broken program.
func Register[C prometheus.Collector](reg prometheus.Registerer, c C) C {
	if reg == nil {
		return c
	}
	err := reg.Register(c)
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		return already.ExistingCollector.(C)
	}
	if err != nil {
		panic(err)
	}
	return c
}
