package telemetry

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Register registers c and returns it, or the collector of the same description that is registered already: several
// users in one process, in turn or at the same time, count together. A nil reg registers nothing. It panics on a
// collector that clashes with another, which is a broken program.
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

// Counters registers a counter with these labels, see [Register].
func Counters(reg prometheus.Registerer, name, help string, labels ...string) *prometheus.CounterVec {
	return Register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
}

// Gauges registers a gauge with these labels, see [Register].
func Gauges(reg prometheus.Registerer, name, help string, labels ...string) *prometheus.GaugeVec {
	return Register(reg, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels))
}

// Histograms registers a histogram with these labels, see [Register].
func Histograms(reg prometheus.Registerer, name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return Register(reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels))
}
