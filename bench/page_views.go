package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/chromedp/chromedp"
	"golang.org/x/sync/errgroup"

	"agentteam/pkg/model"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
)

// worked makes a team that has worked on a goal and ended it, and returns the journals of its members:
// they have called tools, written to each other, and completed half of the tasks one after the other.
func (r *rig) worked(ctx context.Context, s pageScale) ([]*journal.Journal, error) {
	conn, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	bt, err := r.makeTeam(ctx, conn, "page")
	if err != nil {
		return nil, err
	}
	journals, err := people(ctx, bt, s)
	if err != nil {
		return nil, err
	}
	reg, err := registry.Open(ctx, conn)
	if err != nil {
		return nil, err
	}
	if _, _, err := reg.StartGoal(ctx, bt, registry.NewGoal{Text: "Do all parts of it"}); err != nil {
		return nil, err
	}
	if err := work(ctx, bt, journals, s); err != nil {
		return nil, err
	}
	_, err = reg.End(ctx, bt, team.Ending{Status: team.TeamFinished, Summary: "Half of it is done."})
	return journals, err
}

// work has each task of the first half held by a member while all of them make calls.
func work(ctx context.Context, bt *broker.Storage, journals []*journal.Journal, s pageScale) error {
	tasks, mail := board.New(bt.Bucket, board.Options{}), mailbox.New(bt, mailbox.Options{Members: roster.New(bt)})
	rounds := s.tasks / 2
	calls := max(1, s.past/2/rounds/len(journals)) // of a member and round; a call and its result are two events
	for k := range rounds {
		id, i := team.TaskID(fmt.Sprintf("T-%03d", k+1)), k%len(journals)
		h := team.Holder{Agent: memberOf(i), Incarnation: 1}
		held, err := tasks.Claim(ctx, id, h)
		if err != nil {
			return err
		}
		g, gctx := errgroup.WithContext(ctx)
		for n, j := range journals {
			g.Go(func() error {
				for c := range calls {
					if err := called(gctx, j, fmt.Sprintf("c%d-%d", k, c), n); err != nil {
						return err
					}
				}
				return nil
			})
		}
		g.Go(func() error {
			for n := range 4 {
				m := team.Message{Type: team.MsgMessage, From: h.Agent, To: memberOf((i + n + 1) % len(journals)), Content: fmt.Sprintf("About %s: %s", id, words)}
				if _, _, err := mail.Send(gctx, m); err != nil {
					return err
				}
			}
			return nil
		})
		if err := g.Wait(); err != nil {
			return err
		}
		if _, err := tasks.Complete(ctx, id, h, held.Epoch, team.Done{Summary: "done"}); err != nil {
			return err
		}
	}
	return nil
}

func memberOf(i int) team.AgentID { return team.AgentID(fmt.Sprintf("coder-%d", i+1)) }

// called records a call of a tool and its result.
func called(ctx context.Context, j *journal.Journal, id string, n int) error {
	call := model.ToolCall{ID: id, Name: []string{"bash", "read_file", "grep"}[n%3], Arguments: `{"command":"make test","path":"pkg/a.go","pattern":"func"}`}
	turn, err := json.Marshal(model.Reply{Message: model.Message{Role: "assistant", ToolCalls: []model.ToolCall{call}}, Usage: model.Usage{PromptTokens: 1000, CompletionTokens: 50}})
	if err == nil {
		_, err = j.Append(ctx, journal.Record{Kind: journal.Turn, RunID: strconv.Itoa(n), Turn: turn})
	}
	if err == nil {
		_, err = j.Append(ctx, journal.Record{Kind: journal.Result, RunID: strconv.Itoa(n), Result: &journal.ToolResult{CallID: id, Name: call.Name, Content: words}})
	}
	return err
}

// caughtUp holds once the page has read all that was there.
const caughtUp = `/Nothing\. The team/.test(document.querySelector("section[aria-label='Waiting for you']")?.textContent ?? "")`

// along has a person point at the lanes, from one side to the other.
const along = `document.querySelector(".lanes svg").dispatchEvent(new PointerEvent("pointermove", { clientX: 200 + 8 * (n % 120), clientY: 300, bubbles: true }))`

// pageViews are what is measured beside the stream: what of it is drawn, and how a person moves in it.
var pageViews = []struct{ name, at, drawn, moves string }{
	{"board", "board", ".column .row", `for (const l of document.querySelectorAll(".column .list")) l.scrollTop += up * 150`},
	{"graph", "board?show=graph", ".node", `document.querySelector(".graph svg").dispatchEvent(new WheelEvent("wheel", { deltaY: up * 60, clientX: 600, clientY: 400, bubbles: true, cancelable: true }))`},
	{"timeline", "timeline", ".lanes path", along},
	{"mail", "mail", ".thread-row", `document.querySelector(".threads .list").scrollTop += up * 200`},
	{"timeline_again", "timeline", ".lanes path", along},
	{"agent", "agent/coder-1", ".transcript .row", `document.querySelector(".transcript").scrollTop += up * 500`},
	{"result", "result", ".story td", `scrollBy(0, up * 200)`},
	{"past", "", ".stream .row", `document.querySelector(".stream .list").scrollTop += up * 2000`},
}

// viewLasts is how long a person moves in a view.
const viewLasts = 10 * time.Second

// views measures each view while members speak: how soon it is there, and how smoothly it moves.
func (w *watched) views(ctx context.Context, journals []*journal.Journal, rate int) (all []figure, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.sent = make([]atomic.Int64, 3600*rate) // more than it lasts
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := w.write(gctx, journals, rate); !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		defer cancel()
		for _, v := range pageViews {
			if _, err := chromedp.Run(w.tab, chromedp.Evaluate[string](`location.hash = "#/page/`+v.at+`"`)); err != nil {
				return err
			}
			took, err := shown(gctx, w.tab, `document.querySelector("`+v.drawn+`") !== null`)
			if err != nil {
				return fmt.Errorf("the view %s: %w", v.name, err)
			}
			c, err := w.moved(gctx, v.moves)
			if err != nil {
				return fmt.Errorf("the view %s: %w", v.name, err)
			}
			all = append(all, measured("page_"+v.name+"_shown", took, "ms"), measured("page_"+v.name+"_long_tasks", 100*c.Long/max(1, c.Frames), "%").atMost(longGoal),
				measured("page_"+v.name+"_longest_task", c.Longest, "ms"))
		}
		return nil
	})
	return all, g.Wait()
}

// counts are the frames of a time, and its tasks of the main thread over 50 ms.
type counts struct{ Frames, Long, Longest float64 }

// moved has a person move in a view, to and fro.
func (w *watched) moved(ctx context.Context, moves string) (c counts, err error) {
	_, err = chromedp.Run(w.tab, chromedp.Evaluate[int](`(() => {
  Object.assign(bench, { frames: 0, long: 0, longest: 0 })
  let n = 0
  bench.moves = setInterval(() => { const up = ++n % 100 < 50 ? 1 : -1; `+moves+` }, 50)
  return 0
})()`))
	if err != nil {
		return c, err
	}
	select {
	case <-ctx.Done():
		return c, ctx.Err()
	case <-time.After(viewLasts):
	}
	return chromedp.Run(w.tab, chromedp.Evaluate[counts](`(clearInterval(bench.moves), { Frames: bench.frames, Long: bench.long, Longest: bench.longest })`))
}

// shown waits until something holds on the page, and returns how long that took, in milliseconds.
func shown(ctx context.Context, tab context.Context, holds string) (float64, error) {
	begun := time.Now()
	err := eventually(ctx, "the page does not show it", func() (bool, error) {
		return chromedp.Run(tab, chromedp.Evaluate[bool](holds))
	})
	return milliseconds(time.Since(begun)), err
}
