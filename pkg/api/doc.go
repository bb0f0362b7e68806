// Package api is the HTTP server of a leader process: what people ask by teamctl,
// programs and pages ask here. Any leader process answers for any team; several behind a
// load balancer are alike.
//
// It listens, bounds what a request may take, counts, and mounts the handlers, which are
// its sub-packages. Who may ask, package access decides. It stores nothing, and asks the
// cluster by package client only.
package api
