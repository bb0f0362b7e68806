// Package teamwire answers the requests of pages and scripts that were written for another
// team server: /team/..., /files/..., / and /health, with its fields, defaults and frames.
// docs/api.md tells what they are. Where that server is wrong, this one is right: what is not
// there is 404, what cannot be is 409, what is malformed is 422.
//
// A pair (user_id, session_id) names one team. Everything is asked of the cluster through
// package client and read from the team's one feed; nothing is kept here. Who may ask is
// told by package access, around this handler.
package teamwire
