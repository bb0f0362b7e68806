package model

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"agentteam/pkg/team"
)

// Check requests the endpoint's list of models and returns nil if the endpoint would serve this client: it is reachable
// and accepts the key. It tries once and gives up after Options.FirstByte.
//
// Errors, each one line: [team.InvalidArgument] for a refused key, an account without credit, a wrong address, or an
// address that is not a model endpoint, with its answer; [team.Unavailable] if nothing answers or the endpoint is in
// trouble.
func (c *Client) Check(ctx context.Context) error {
	q, err := c.dialect.encode(Request{Model: c.opt.Model, Messages: []*Message{{Role: "user"}}})
	if err != nil {
		return err
	}
	// The list wants the headers and the query of a call, if any.
	_, query, _ := strings.Cut(q.path, "?")
	q.path, q.body = strings.TrimSuffix("/models?"+query, "?"), nil

	x, err := c.open(ctx, http.MethodGet, q)
	defer x.close()
	fail := c.listed(x, err)
	switch {
	case fail == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case fail.advice == TryAgain:
		address, _ := c.opt.endpointSettings()
		return team.Errorf(team.Unavailable, "the model endpoint %s cannot be used: %w", c.name, fail.err).
			WithHint("check %s and that the endpoint is running", address)
	}
	return c.explain(fail)
}

// listed reads the list of models, whose request ended with err, and returns nil if it is one.
func (c *Client) listed(x *exchange, err error) *failure {
	if err != nil {
		return c.unanswered(x, call{}, err)
	}
	if s := x.status(); s < 200 || s >= 300 {
		return c.refused(x)
	}
	body, err := io.ReadAll(io.LimitReader(x.resp.Body, largestEvent))
	if err != nil {
		return c.unanswered(x, call{}, err)
	}
	f := fields{}
	if json.Unmarshal(body, &f) == nil {
		if e, ok := errorIn(f); ok && !isSet(f["data"]) {
			return c.chooseDialect(x, e)
		}
	}
	if !json.Valid(body) { // what kind of JSON differs
		return c.noEndpoint(x, bytes.TrimSpace(body))
	}
	return nil
}
