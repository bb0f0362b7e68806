// Package teamwire serves pages and scripts that were written for another team server: /team/..., /files/..., / and
// /health, with its fields, defaults and frames, which docs/api.md describes. It corrects that server's errors: 404 for
// a missing thing, 409 for an impossible change, 422 for malformed input.
//
// A pair (user_id, session_id) names one team. The package calls the cluster through package client, reads the team's
// one feed, and stores nothing. Package access, around this handler, authorizes requests.
package teamwire
