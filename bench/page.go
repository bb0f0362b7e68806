package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"golang.org/x/sync/errgroup"

	"agentteam/pkg/api/access"
	"agentteam/pkg/config"
	"agentteam/pkg/model"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
)

// pageScale is how much the page bench does.
type pageScale struct {
	members, tasks, rate int
	past                 int           // events before the page is opened
	lasts                time.Duration // the heap is measured after a fifth of it, and at its end
}

var (
	pageWhole = pageScale{50, 1000, 100, 100_000, 5 * time.Minute}
	pageQuick = pageScale{50, 1000, 100, 50_000, time.Minute}
)

// Goals of the page.
const (
	longGoal     = 1    // of 100 frames have a task of the main thread over 50 ms
	heapGoal     = 1.3  // at the end beside that after a fifth
	pageLagGoal  = 1000 // ms
	firstPaint   = 1000 // ms
	lookInterval = 500 * time.Millisecond
)

// pageBench measures the page in a headless Chromium while one process writes beside it.
func pageBench(ctx context.Context, r *rig) ([]figure, error) {
	s := pageWhole
	if os.Getenv("BENCH") == "quick" {
		s = pageQuick
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		return nil, errors.New("there is no chromium on this machine: apt-get install chromium")
	}
	progress("the page: %d members, %d tasks, %d events, and %d more a second for %v", s.members, s.tasks, s.past, s.rate, s.lasts)
	journals, err := r.worked(ctx, s) // before a leader is there, which would take the team up
	if err != nil {
		return nil, err
	}
	b, err := newAPIRig(ctx, r)
	if err != nil {
		return nil, err
	}
	defer b.close()
	alloc, stop := chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.WindowSize(1280, 900))...)
	defer stop()
	tab, cancel := chromedp.NewContext(alloc)
	defer cancel()
	address := b.url + "/login?" + url.Values{"code": {access.NewCode(config.Secret(b.token), time.Now())}}.Encode()
	if err := chromedp.Do(tab, chromedp.Navigate(address), chromedp.Navigate(b.url+"/#/page")); err != nil {
		return nil, err
	}
	late, err := shown(ctx, tab, caughtUp)
	if err != nil {
		return nil, err
	}
	w := &watched{tab: tab, sent: make([]atomic.Int64, s.rate*int(s.lasts.Seconds()))}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.write(gctx, journals, s.rate) })
	g.Go(func() error { return w.look(gctx, s.lasts) })
	if err := g.Wait(); err != nil {
		return nil, err
	}
	figures, err := w.figures()
	if err != nil {
		return nil, err
	}
	more, err := w.views(ctx, journals, s.rate)
	return append(append([]figure{measured("page_opened_late", late, "ms")}, figures...), more...), err
}

// people fills the team with members, whose journals it returns, and tasks.
func people(ctx context.Context, bt *broker.Storage, s pageScale) (journals []*journal.Journal, err error) {
	members := roster.New(bt)
	for i := range s.members {
		name := memberOf(i)
		if _, err := members.Put(ctx, team.Member{AgentID: name, Role: "coder", Color: "cyan", Backend: team.Pool, State: team.Joined, Incarnation: 1, JoinedAt: time.Now()}); err != nil {
			return nil, err
		}
		j, _, err := journal.Open(ctx, bt, name, 1, journal.Options{})
		if err != nil {
			return nil, err
		}
		journals = append(journals, j)
	}
	tasks := board.New(bt.Bucket, board.Options{})
	for from := 0; from < s.tasks; from += 100 {
		batch := make([]team.NewTask, min(100, s.tasks-from))
		for i := range batch {
			batch[i] = team.NewTask{Title: fmt.Sprintf("Do part %d of it", from+i+1)}
			if i > 0 {
				batch[i].After = []int{(i - 1) / 2}
			}
		}
		if _, err := tasks.Create(ctx, team.UserAgent, batch...); err != nil {
			return nil, err
		}
	}
	return journals, nil
}

// watched is the page while it is measured.
type watched struct {
	tab         context.Context
	sent        []atomic.Int64 // when each event was stored, in nanoseconds; 0 = it is not yet
	lags        []float64      // ms
	early, late float64        // MiB of heap
}

// write has the members speak in turn, at an even rate.
func (w *watched) write(ctx context.Context, journals []*journal.Journal, rate int) error {
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for n := range w.sent {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		message := model.Message{Role: "assistant", Content: fmt.Sprintf("serial %d. %s", n, words)}
		turn, err := json.Marshal(model.Reply{Message: message, Usage: model.Usage{PromptTokens: 1000, CompletionTokens: 50}})
		if err == nil {
			_, err = journals[n%len(journals)].Append(ctx, journal.Record{Kind: journal.Turn, RunID: strconv.Itoa(n % len(journals)), Turn: turn})
		}
		if err != nil {
			return err
		}
		w.sent[n].Store(time.Now().UnixNano())
	}
	return nil
}

// counter counts frames, and tasks of the main thread over 50 ms.
const counter = `(() => {
  window.bench = { frames: 0, long: 0, longest: 0 }
  new PerformanceObserver((l) => { for (const e of l.getEntries()) { bench.long++; bench.longest = Math.max(bench.longest, e.duration) } }).observe({ type: "longtask" })
  const frame = () => { bench.frames++; requestAnimationFrame(frame) }
  requestAnimationFrame(frame)
  return 0
})()`

// newest is the last line of the stream that is drawn.
const newest = `[...document.querySelectorAll(".stream .row")].at(-1)?.textContent ?? ""`

var serialOf = regexp.MustCompile(`serial (\d+)\.`)

// look measures until the time is over how far the page is behind, and its heap twice.
func (w *watched) look(ctx context.Context, lasts time.Duration) (err error) {
	if _, err := chromedp.Run(w.tab, chromedp.Evaluate[int](counter)); err != nil {
		return err
	}
	begun := time.Now()
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	for time.Since(begun) < lasts {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		text, err := chromedp.Run(w.tab, chromedp.Evaluate[string](newest))
		if err != nil {
			return err
		}
		if m := serialOf.FindStringSubmatch(text); m != nil && time.Since(begun) > 5*time.Second {
			n, _ := strconv.Atoi(m[1]) // digits
			lag := 0.0
			if n+1 < len(w.sent) {
				if at := w.sent[n+1].Load(); at != 0 { // what it should show already
					lag = milliseconds(time.Since(time.Unix(0, at)))
				}
			}
			w.lags = append(w.lags, lag)
		}
		if w.early == 0 && time.Since(begun) > lasts/5 {
			if w.early, err = w.heap(); err != nil {
				return err
			}
		}
	}
	w.late, err = w.heap()
	return err
}

// heap is what the page's objects take, in MiB, once what is not used is gone.
func (w *watched) heap() (float64, error) {
	if _, err := chromedp.Call(w.tab, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
		return 0, err
	}
	use, err := chromedp.Call(w.tab, runtime.GetHeapUsage, cdp.Empty{})
	if err != nil {
		return 0, err
	}
	return use.UsedSize / (1 << 20), nil
}

func (w *watched) figures() ([]figure, error) {
	type counts struct {
		Frames, Long   float64
		Longest, Paint float64
	}
	c, err := chromedp.Run(w.tab, chromedp.Evaluate[counts](`({ Frames: bench.frames, Long: bench.long, Longest: bench.longest, Paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0 })`))
	if err != nil {
		return nil, err
	}
	if c.Frames == 0 || len(w.lags) == 0 {
		return nil, errors.New("the page has drawn nothing")
	}
	return []figure{
		measured("page_first_paint", c.Paint, "ms").atMost(firstPaint),
		measured("page_frames", c.Frames, "frames"),
		measured("page_frames_with_long_tasks", 100*c.Long/c.Frames, "%").atMost(longGoal),
		measured("page_longest_task", c.Longest, "ms"),
		measured("page_heap", w.late, "MiB").beside(w.early).atMost(heapGoal),
		measured("page_stream_lag_p50", median(w.lags), "ms"),
		measured("page_stream_lag_max", quantile(w.lags, 1), "ms").atMost(pageLagGoal),
	}, nil
}
