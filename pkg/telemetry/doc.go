// Package telemetry is how an operator looks into a process: its log, its
// Prometheus registry, and the HTTP server with /metrics, /livez and /readyz.
//
// It knows no domain: which metrics there are is decided beside the code they
// count, and what "ready" means by whoever starts the server.
package telemetry
