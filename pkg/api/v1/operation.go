package v1

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"agentteam/pkg/api/problem"
	"agentteam/pkg/client"
	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

// operation describes an operation: its identity in the OpenAPI, and its limits.
type operation struct {
	id      string // of the OpenAPI; programs that were generated from it call it so
	method  string
	path    string
	tag     string
	summary string        // a few words
	doc     string        // the rest of what is to be known
	status  int           // of a success; default 200
	also    []int         // other successes, with the same answer
	more    time.Duration // that it may take, beyond what each may
	here    bool          // this process answers it without NATS
}

// Headers that only some operations take. Clients would expect an effect elsewhere too, so a header without effect is
// refused.
const (
	keyHeader   = "Idempotency-Key"
	matchHeader = "If-Match"
)

// newAPI returns an API without operations.
func newAPI(mux *http.ServeMux) huma.API {
	c := huma.DefaultConfig("agentteam", "1")
	c.Info.Description = "What people and programs may ask of agent teams. Errors are problem documents of RFC 9457 with a code."
	c.CreateHooks = nil                                   // no $schema in answers
	c.DocsPath, c.SchemasPath, c.OpenAPIPath = "", "", "" // see [service.describe]
	c.RejectUnknownQueryParameters = true
	// Answers may get more fields; requests may not have unknown fields, so their types declare that themselves.
	c.AllowAdditionalPropertiesByDefault = true
	format := huma.Format{Marshal: marshal, Unmarshal: unmarshal}
	c.Formats = map[string]huma.Format{"application/json": format, "json": format}
	// huma's own error type would be in the OpenAPI, and in answers to requests that huma refuses. Its constructor is a
	// package variable, which other packages of the program may set too; so the alias and the transformer replace the
	// type at the output.
	c.Transformers = []huma.Transformer{func(ctx huma.Context, _ string, v any) (any, error) {
		switch v := v.(type) {
		case *huma.ErrorModel:
			return refusalOf(v).In(ctx.Context()), nil
		case *failure:
			return v.Document, nil
		}
		return v, nil
	}}
	nameWords(c.Components.Schemas)
	c.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[huma.ErrorModel](), reflect.TypeFor[problem.Document]())
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}}
	c.Security = []map[string][]string{{"token": {}}}
	api := humago.New(mux, c)
	api.UseMiddleware(func(ctx huma.Context, next func(huma.Context)) {
		for _, name := range []string{keyHeader, matchHeader} {
			if ctx.Header(name) == "" || ctx.Method() == http.MethodGet || ctx.Method() == http.MethodHead || takes(ctx.Operation(), name) {
				continue
			}
			_, w := humago.Unwrap(ctx)
			problem.Write(w, team.Errorf(team.InvalidArgument, "header.%s: this operation does not take it", name).
				WithHint("leave it out, and look at what became of the request before you repeat it"))
			return
		}
		r, w := humago.Unwrap(ctx)
		if err := rename(r, ctx.Operation().OperationID, func(name string) bool { return hasParameter(ctx.Operation(), "query", name) }); err != nil {
			problem.Write(w, err)
			return
		}
		next(withTag(ctx))
	})
	return api
}

func takes(o *huma.Operation, header string) bool { return hasParameter(o, "header", header) }

func hasParameter(o *huma.Operation, in, name string) bool {
	return slices.ContainsFunc(o.Parameters, func(p *huma.Param) bool { return p.In == in && p.Name == name })
}

func marshal(w io.Writer, v any) error {
	data, err := codec.Plain(v)
	if err != nil {
		return err
	}
	_, _ = w.Write(append(data, '\n')) // a client that has left needs none
	return nil
}

// unmarshal decodes a body, and reports where it is not JSON.
func unmarshal(data []byte, v any) error {
	if !utf8.Valid(data) {
		at := 0
		for r, n := utf8.DecodeRune(data); r != utf8.RuneError || n > 1; r, n = utf8.DecodeRune(data[at:]) {
			at += n
		}
		return fmt.Errorf("byte %d is not UTF-8", at)
	}
	err := json.Unmarshal(data, v)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("this is no JSON: %w, at byte %d", err, syntax.Offset)
	}
	return err
}

// failure is an error that is sent to the client.
type failure struct{ problem.Document }

func (f *failure) Error() string             { return f.Detail }
func (f *failure) GetStatus() int            { return f.Status }
func (f *failure) ContentType(string) string { return "application/problem+json" }
func (f *failure) GetHeaders() http.Header   { return f.Document.Headers() }

// maxBody bounds the body of a request, in bytes; it is the limit of the whole API.
const maxBody = 1 << 20

// refusalOf returns the document of a request that huma refused.
func refusalOf(e *huma.ErrorModel) problem.Document {
	d := problem.Document{Title: http.StatusText(e.Status), Status: e.Status, Detail: e.Detail, Code: team.InvalidArgument}
	for _, f := range e.Errors {
		said := strings.Replace(f.Message, `one of ", `, `one of "`, 1) // words of which the first is none
		d.Errors = append(d.Errors, problem.Fault{Location: f.Location, Message: said})
	}
	if e.Status == http.StatusRequestEntityTooLarge {
		d.Detail, d.Hint = fmt.Sprintf("the body has more than %d bytes", maxBody), "send less at once"
	}
	if len(d.Errors) > 0 { // one line for people
		d.Detail = d.Errors[0].Message
		if at := d.Errors[0].Location; at != "" {
			d.Detail = at + ": " + d.Detail
		}
		if n := len(d.Errors) - 1; n > 0 {
			d.Detail += fmt.Sprintf(" (and %d more, in errors)", n)
		}
	}
	return d
}

// answer is an answer with only a body.
type answer[T any] struct{ Body T }

// errLate ends requests that take too long.
var errLate = errors.New("the request has taken too long")

// add registers an operation that is answered by f.
func add[I, O any](s *service, o operation, f func(context.Context, *I) (*O, error)) {
	op := o.huma(reflect.TypeFor[I](), nil)
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, s.limit(o, in), errLate)
		defer cancel()
		err := s.ready(ctx, o)
		var out *O
		if err == nil {
			out, err = f(ctx, in)
		}
		if err != nil {
			return nil, &failure{s.document(ctx, o, err)}
		}
		return out, nil
	})
	for _, status := range o.also {
		same := *op.Responses[strconv.Itoa(o.status)]
		same.Description = http.StatusText(status)
		op.Responses[strconv.Itoa(status)] = &same
	}
}

// ready refuses operations that need NATS while this process knows that NATS is away, so that no client waits for it.
// Error: Unavailable.
func (s *service) ready(ctx context.Context, o operation) error {
	err := s.Client.Ready(ctx)
	if err == nil || o.here {
		return nil
	}
	if o.method != http.MethodGet {
		return team.Errorf(team.Unavailable, "%w: nothing was done", err).WithHint("try again soon")
	}
	return team.Errorf(team.Unavailable, "%w", err).WithHint("try again soon")
}

// addOf is add for an operation on an existing team, which is opened for f.
func addOf[I, O any, P interface {
	*I
	of() OfTeam
}](s *service, o operation, f func(context.Context, *client.Team, *I) (*O, error)) {
	add(s, o, func(ctx context.Context, in *I) (*O, error) {
		t, err := s.open(ctx, P(in).of())
		if err != nil {
			return nil, err
		}
		return f(ctx, t, in)
	})
}

// addStream registers an operation whose f writes its answer itself, with one of these types, or returns an error
// before it has written anything.
func addStream[I any](s *service, o operation, content map[string]*huma.MediaType, f func(http.ResponseWriter, *http.Request, *I) error) {
	huma.Register(s.api, o.huma(reflect.TypeFor[I](), content), func(_ context.Context, in *I) (*huma.StreamResponse, error) {
		return &huma.StreamResponse{Body: func(ctx huma.Context) {
			r, w := humago.Unwrap(ctx)
			err := s.ready(r.Context(), o)
			if err == nil {
				err = f(w, r, in)
			}
			if err != nil {
				s.document(r.Context(), o, err).Write(w)
			}
		}}, nil
	})
}

// waits is a request with its own time limit.
type waits interface{ wait() time.Duration }

// limit returns the time limit of a request for the operation.
func (s *service) limit(o operation, in any) time.Duration {
	if w, ok := in.(waits); ok {
		return s.within + w.wait()
	}
	return s.within + o.more
}

func (o operation) huma(in reflect.Type, content map[string]*huma.MediaType) huma.Operation {
	op := huma.Operation{
		MaxBodyBytes: maxBody + 1, // huma refuses a body that is as long as its limit
		OperationID:  o.id, Method: o.method, Path: o.path, Tags: []string{o.tag}, Summary: o.summary, Description: o.doc, DefaultStatus: o.status,
		Responses: map[string]*huma.Response{}, // which huma fills
		Errors:    []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusUnprocessableEntity},
	}
	if strings.Contains(o.path, "{") {
		op.Errors = append(op.Errors, http.StatusNotFound)
	}
	if o.method != http.MethodGet {
		op.Errors = append(op.Errors, http.StatusConflict)
	}
	if _, ok := in.FieldByName("Body"); ok {
		op.Errors = append(op.Errors, http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	if _, ok := in.FieldByName("IfMatch"); ok {
		op.Errors = append(op.Errors, http.StatusPreconditionFailed)
	}
	if o.method == http.MethodGet && content == nil {
		op.Responses["304"] = &huma.Response{Description: "The answer is still that of the ETag in If-None-Match"}
	}
	if content != nil {
		op.Responses["200"] = &huma.Response{Description: http.StatusText(http.StatusOK), Content: content}
	}
	return op
}

// document returns the document of an error for clients.
func (s *service) document(ctx context.Context, o operation, err error) problem.Document {
	d := problem.Of(err)
	switch {
	case errors.Is(err, team.ErrRevision):
		d.Status = http.StatusPreconditionFailed
	case (ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) && (d.Code == "" || d.Code == team.Unavailable):
		d = problem.Document{Status: http.StatusGatewayTimeout, Code: team.Unavailable, Detail: "the cluster has not answered in time", Hint: "try again"}
		if o.method != http.MethodGet {
			d.Detail += ": whether this was done is not known"
			d.Hint = "look at how things stand; with the same " + keyHeader + " or " + matchHeader + " it is safe to send it again"
		}
	case d.Code == "":
		s.Log.ErrorContext(ctx, "an API request has failed", "operation", o.id, "request", problem.Request(ctx), "err", err)
		d.Detail = "the request has failed; the log of this process says why"
	}
	d.Title = http.StatusText(d.Status)
	return d.In(ctx)
}
