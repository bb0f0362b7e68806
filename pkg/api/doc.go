// Package api is the HTTP server of a leader process, the counterpart of teamctl for programs and pages. Any leader
// process serves any team; several behind a load balancer are equivalent.
//
// It listens, bounds the resources of requests, counts them, and mounts the handlers of its sub-packages. Package
// access authorizes requests. The package stores nothing, and reaches the cluster through package client only.
package api
