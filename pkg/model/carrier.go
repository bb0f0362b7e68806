package model

import (
	"io"
	"net/http"
	"strconv"

	openai "github.com/sashabaranov/go-openai"
)

// carrier connects go-openai and an endpoint. It takes the request that go-openai has written, fills its slots, and
// keeps it for the attempt that sends it. go-openai reads the answer from that attempt: whole events only.
type carrier struct {
	encoding *encoding
	req      Request
	extra    fields // of the body, which go-openai has no words for
	limit    string // the field of the answer's limit
	body     []byte
	from, to int // where in body the messages begin, and where those end that are kept

	next func() ([]byte, error) // reads one event of source
	io.Reader
}

var _ openai.HTTPDoer = (*carrier)(nil)

// carry has go-openai write a request and open its stream, and keeps the JSON of the runs. The client serves this call
// only, so its hook need not look up the call of a request.
func carry[S interface{ RecvRaw() ([]byte, error) }](c *carrier, runs []run, kept beginning, create func(*openai.Client) (S, error)) (call, error) {
	config := openai.DefaultConfig("") // the key stands in a header of ours
	config.HTTPClient = c
	stream, err := create(openai.NewClientWithConfig(config))
	if err != nil {
		return call{}, err
	}
	c.next = stream.RecvRaw
	if len(runs) > 0 {
		kept.body = c.body[c.from:c.to:c.to]
		c.encoding.keep(runs, kept)
	}
	return call{body: c.body, stream: c}, nil
}

// Do completes the body of r. Fields that go-openai does not have follow its own, so that a prompt begins like the
// previous one.
func (c *carrier) Do(r *http.Request) (*http.Response, error) {
	written := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, written); err != nil {
		return nil, err
	}
	e := c.encoding
	c.body = e.fill(written)
	prompt := len(c.body) - len("]}") - e.pictures
	c.body = c.body[:len(c.body)-1]
	c.body = appendFields(c.body, c.extra, e.Drop...)
	c.body = append(appendText(append(c.body, ','), c.limit), ':')
	c.body = append(strconv.AppendInt(c.body, int64(e.limit(c.req, prompt)), 10), '}')
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: c}, nil
}

// Close does nothing: the attempt closes the answer.
func (c *carrier) Close() error { return nil }
