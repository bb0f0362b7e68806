package v1

import (
	"context"
	"io"
	"mime"
	"net/http"
	"path"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"agentteam/pkg/client"
)

type listDeliverablesIn struct {
	OfTeam
	Paging
}

type deliverablesOut struct {
	Body struct {
		Deliverables []client.Deliverable `json:"deliverables" nullable:"false"`
		Next         string               `json:"next,omitempty" doc:"page of the next page; left out on the last."`
	} `nameHint:"Deliverables"`
}

type deliverableIn struct {
	OfTask
	Path string `query:"path" doc:"Of an artifact of the task; left out: its deliverable."`
}

// download limits the transfer of a deliverable of at most 64 MiB.
const download = 10 * time.Minute

func (s *service) deliverables() {
	addOf(s, operation{
		id: "list-deliverables", method: http.MethodGet, path: "/v1/teams/{team}/deliverables", tag: tagTasks, summary: "List what completed tasks have left behind",
		doc: "In order of the tasks.",
	}, func(ctx context.Context, t *client.Team, in *listDeliverablesIn) (*deliverablesOut, error) {
		from, err := in.from()
		if err != nil {
			return nil, err
		}
		all, err := t.Board().Deliverables(ctx)
		var out deliverablesOut
		out.Body.Deliverables, out.Body.Next = page(all, from, in.Limit)
		return &out, err
	})
	addStream(s, operation{
		id: "get-deliverable", method: http.MethodGet, path: "/v1/teams/{team}/tasks/{task}/deliverable", tag: tagTasks, summary: "Download a task's deliverable",
		doc: "For a completed task the file as it was stored then; otherwise the file as it is in the workspace, or in the line of a team that has one. The ETag is the digest of what was stored. With path: the artifact of that path, as it was stored with the result.",
	}, map[string]*huma.MediaType{"application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}, s.deliverable)
}

func (s *service) deliverable(w http.ResponseWriter, r *http.Request, in *deliverableIn) error {
	ctx, cancel := context.WithTimeout(r.Context(), download)
	defer cancel()
	opening := time.AfterFunc(s.within, cancel)
	t, id, err := s.task(ctx, in.OfTask)
	if err != nil {
		return err
	}
	var d client.Deliverable
	var f io.ReadCloser
	if in.Path == "" {
		d, f, err = t.Board().OpenDeliverable(ctx, id)
	} else {
		d, f, err = t.Board().OpenArtifact(ctx, id, in.Path)
	}
	if err != nil {
		return err
	}
	defer f.Close() // it is only read
	opening.Stop()
	// Models write these files: no browser may show one as a page of ours.
	head := w.Header()
	head.Set("Content-Type", "application/octet-stream")
	head.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(d.Path)}))
	head.Set("X-Content-Type-Options", "nosniff")
	if d.Digest != "" {
		head.Set("ETag", `"`+d.Digest+`"`)
	}
	if _, err := io.Copy(w, f); err != nil {
		s.Log.WarnContext(ctx, "a deliverable was not sent whole", "team", t.ID(), "task", id, "err", err)
		panic(http.ErrAbortHandler) // the client must not take half of it for all
	}
	return nil
}
