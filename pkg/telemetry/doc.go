// Package telemetry shows an operator the inside of a process: its log, its Prometheus registry, and the HTTP server
// with /metrics, /livez and /readyz.
//
// It knows no domain: each package defines its own metrics beside the code that they count, and the caller that starts
// the server defines "ready".
package telemetry
