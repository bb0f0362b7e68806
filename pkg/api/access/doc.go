// Package access authorizes requests to the HTTP API: it runs before every handler and refuses a request without a
// token, from a page of another site, or to another host name than the API's.
//
// It stores only the one-time codes that were used: codes and cookies are signed with the token, so all processes with
// the same token file accept them.
//
// It does not bound the size or the time of a request; package api does.
package access
