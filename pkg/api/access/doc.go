// Package access decides who may ask the HTTP API: it stands before every handler and
// refuses what has no token, comes from a page of another site, or was sent to another
// name than the API's own.
//
// It keeps nothing but the one-time codes that it has seen: codes and cookies are signed
// with the token, so all processes that have the same token file take them.
//
// It does not bound how much a request may hold or how long it may take; package api
// does.
package access
