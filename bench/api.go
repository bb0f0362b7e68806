package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"agentteam/pkg/client"
	"agentteam/pkg/cluster/childproc"
	"agentteam/pkg/store/broker"
	eventlog "agentteam/pkg/store/runlog"
	"agentteam/pkg/team"
)

// apiScale is how much the API bench does.
type apiScale struct {
	clients, rate int           // streams, and events a second
	stream        time.Duration // for which they are read
	past          int           // events of the team that a late reader comes to
	late, lists   int           // readers that come late; rounds of lists of tasks
	idle          time.Duration
}

var (
	apiWhole = apiScale{clients: 500, rate: 100, stream: 5 * time.Minute, past: 100_000, late: 20, lists: 5, idle: 20 * time.Second}
	apiQuick = apiScale{clients: 500, rate: 100, stream: 15 * time.Second, past: 100_000, late: 5, lists: 2, idle: 5 * time.Second}
)

// Goals of the API.
const (
	lagGoal    = 1000 // ms, of the last of all clients
	flatGoal   = 1.25 // memory at the end beside that after a third of the time
	lateGoal   = 200  // ms
	listedTask = 100  // tasks on the board that is listed
	listers    = 4    // who ask for it at once
	listFor    = time.Second
)

// apiBench measures the HTTP API of a leader process.
func apiBench(ctx context.Context, r *rig) (all []figure, err error) {
	s := apiWhole
	if os.Getenv("BENCH") == "quick" {
		s = apiQuick
	}
	b, err := newAPIRig(ctx, r)
	if err != nil {
		return nil, err
	}
	defer b.close()
	for _, part := range []func(context.Context, *apiRig, apiScale) ([]figure, error){apiIdle, apiLists, apiLate, apiStreams} {
		figures, err := part(ctx, b, s)
		if err != nil {
			return nil, err
		}
		all = append(all, figures...)
	}
	return all, nil
}

// apiRig is a leader process with its API, and a connection by which teams are filled.
type apiRig struct {
	rig      *rig
	conn     *broker.Conn
	client   *client.Client
	leader   *childproc.Process
	lifeline *os.File
	held     *os.File
	url      string // of the API
	token    string
	http     *http.Client
}

func newAPIRig(ctx context.Context, r *rig) (b *apiRig, err error) {
	b = &apiRig{rig: r, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: listers, DisableCompression: true}}}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.lifeline, b.held, err = os.Pipe(); err != nil {
		return nil, err
	}
	if b.conn, err = r.connect(ctx); err != nil {
		return nil, err
	}
	if b.client, err = client.Connect(ctx, client.Options{URL: r.server.URL()}); err != nil {
		return nil, err
	}
	file := filepath.Join(r.dir, "api-token")
	b.leader, err = childproc.Start(filepath.Join(r.bin, "leader"),
		[]string{"--server", r.server.URL(), "--http", "127.0.0.1:0", "--workspace", r.dir, "--api", "127.0.0.1:0", "--api-token-file", file},
		[]string{"OPENAI_BASE_URL=http://127.0.0.1:1/v1", "OPENAI_MODEL=none", "OPENAI_API_KEY=none", "AGENTTEAM_LOG_LEVEL=warn"},
		b.lifeline, os.Stderr)
	if err != nil {
		return nil, err
	}
	err = eventually(ctx, "no leader process serves the API", func() (bool, error) {
		status, err := b.client.Processes(ctx)
		if err == nil && len(status.Leaders) > 0 {
			b.url = status.Leaders[0].API
		}
		return b.url != "", nil
	})
	if err != nil {
		return nil, err
	}
	token, err := os.ReadFile(file)
	b.token = strings.TrimSpace(string(token))
	return b, err
}

func (b *apiRig) close() {
	if b.leader != nil {
		b.leader.Kill()
		<-b.leader.Done()
	}
	for _, f := range []*os.File{b.lifeline, b.held} {
		if f != nil {
			f.Close()
		}
	}
	if b.client != nil {
		b.client.Close()
	}
	if b.conn != nil {
		b.conn.Close()
	}
}

// get asks the API, or another server, for a path of it.
func (b *apiRig) get(ctx context.Context, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+b.token)
	resp, err := b.http.Do(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		resp.Body.Close()
		err = fmt.Errorf("%s: %s: %s", url, resp.Status, text)
	}
	return resp, err
}

// stream opens the stream of what happens to coder-1 behind a cursor.
func (b *apiRig) stream(ctx context.Context, id team.TeamID, after client.Cursor) (*bufio.Reader, io.Closer, error) {
	resp, err := b.get(ctx, b.url+"/v1/teams/"+string(id)+"/events?follow=true&live=false&agent=coder-1&after="+string(after))
	if err != nil {
		return nil, nil, err
	}
	return bufio.NewReaderSize(resp.Body, 8<<10), resp.Body, nil
}

// next returns the data of the next event of a stream, until the next call.
func next(in *bufio.Reader) ([]byte, error) {
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			return data, nil
		}
	}
}

// happen stores event number n of a team.
func happen(ctx context.Context, log *eventlog.Log, n int) {
	log.Emit(ctx, team.Event{AgentID: "coder-1", RoleName: "coder", Event: team.EventBody{Type: team.Custom, Name: "bench", Message: strconv.Itoa(n), Content: words}})
}

// words are those of a usual event.
var words = strings.Repeat("The schema is in schema.graphql. ", 5)

// serial is the number of an event of happen.
func serial(data []byte) (int, error) {
	_, rest, ok := bytes.Cut(data, []byte(`"message":"`))
	digits, _, found := bytes.Cut(rest, []byte(`"`))
	if !ok || !found {
		return 0, fmt.Errorf("no event of the bench: %s", data)
	}
	return strconv.Atoi(string(digits))
}

// apiStreams measures how far behind the last of many readers is while events come at an
// even rate, whether each gets all, and what they cost the process in memory.
func apiStreams(ctx context.Context, b *apiRig, s apiScale) ([]figure, error) {
	total := s.rate * int(s.stream.Seconds())
	progress("streams: %d readers, %d events a second for %v", s.clients, s.rate, s.stream)
	bt, err := b.rig.makeTeam(ctx, b.conn, "streams")
	if err != nil {
		return nil, err
	}
	tm, err := b.client.Open(ctx, bt.ID)
	if err != nil {
		return nil, err
	}
	end, err := tm.End(ctx)
	if err != nil {
		return nil, err
	}
	before, err := resident(b.leader.PID())
	if err != nil {
		return nil, err
	}
	read := make([]spread, total)
	g, ctx := errgroup.WithContext(ctx)
	var ready sync.WaitGroup
	ready.Add(s.clients)
	for range s.clients {
		g.Go(func() error {
			in, body, err := b.stream(ctx, bt.ID, end)
			ready.Done()
			if err != nil {
				return err
			}
			defer body.Close()
			return readAll(in, read)
		})
	}
	ready.Wait()
	sent := make([]time.Time, total)
	var early, late float64
	g.Go(func() (err error) {
		early, late, err = b.send(ctx, eventlog.New(bt, nil), s.rate, sent)
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var lags []float64 // ms
	lost := 0
	for n := range total {
		lost += s.clients - int(read[n].readers.Load())
		lags = append(lags, milliseconds(time.Unix(0, read[n].last.Load()).Sub(sent[n])))
	}
	return []figure{
		measured("stream_last_reader_lag_p50", median(lags), "ms"),
		measured("stream_last_reader_lag_p99", quantile(lags, 0.99), "ms").atMost(lagGoal),
		measured("stream_events_lost", float64(lost), "events").atMost(0),
		measured("stream_memory_per_reader", (late-before)*1024/float64(s.clients), "KiB"),
		measured("stream_memory_growth", late, "MiB").beside(early).atMost(flatGoal),
	}, nil
}

// send stores an event for each of sent, rate a second, and notes when. It returns the
// process's memory after a third, when it keeps as much of the feed as it ever does, and at
// the end.
func (b *apiRig) send(ctx context.Context, log *eventlog.Log, rate int, sent []time.Time) (early, late float64, err error) {
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for n := range sent {
		select {
		case <-ctx.Done():
			return 0, 0, ctx.Err()
		case <-tick.C:
		}
		if n == len(sent)/3 {
			if early, err = resident(b.leader.PID()); err != nil {
				return 0, 0, err
			}
		}
		sent[n] = time.Now()
		happen(ctx, log, n)
	}
	late, err = resident(b.leader.PID())
	return early, late, err
}

// spread counts the readers that have an event, and holds when the last of them got it.
type spread struct{ readers, last atomic.Int64 } // last in nanoseconds

// readAll reads the events in order, and notes each in read.
func readAll(in *bufio.Reader, read []spread) error {
	for want := range read {
		data, err := next(in)
		if err != nil {
			return fmt.Errorf("a reader after %d of %d events: %w", want, len(read), err)
		}
		n, err := serial(data)
		if err != nil {
			return err
		}
		if n != want {
			return fmt.Errorf("a reader got event %d in place of %d", n, want)
		}
		read[n].readers.Add(1)
		for now := time.Now().UnixNano(); ; {
			was := read[n].last.Load()
			if now <= was || read[n].last.CompareAndSwap(was, now) {
				break
			}
		}
	}
	return nil
}

// apiLate measures how soon a reader of a team with a long past has its first event.
func apiLate(ctx context.Context, b *apiRig, s apiScale) (all []figure, err error) {
	progress("a late reader: %d events", s.past)
	bt, err := b.rig.makeTeam(ctx, b.conn, "late")
	if err != nil {
		return nil, err
	}
	log := eventlog.New(bt, nil)
	var n atomic.Int64
	var writers sync.WaitGroup
	for range 64 {
		writers.Go(func() {
			for i := int(n.Add(1)); i <= s.past; i = int(n.Add(1)) {
				happen(ctx, log, i)
			}
		})
	}
	writers.Wait()
	tm, err := b.client.Open(ctx, bt.ID)
	if err != nil {
		return nil, err
	}
	near, err := tm.End(ctx)
	if err != nil {
		return nil, err
	}
	happen(ctx, log, s.past+1)
	for _, from := range []struct {
		name  string
		after client.Cursor
	}{{"late_first_event_from_beginning", ""}, {"late_first_event_near_end", near}} {
		var took []float64
		for range s.late {
			begun := time.Now()
			in, body, err := b.stream(ctx, bt.ID, from.after)
			if err != nil {
				return nil, err
			}
			_, err = next(in)
			took = append(took, milliseconds(time.Since(begun)))
			body.Close()
			if err != nil {
				return nil, err
			}
		}
		all = append(all, measured(from.name, median(took), "ms"), measured(from.name+"_max", quantile(took, 1), "ms").atMost(lateGoal))
	}
	return all, nil
}

// apiLists measures requests a second for a list of tasks, beside a handler of net/http
// that reads the same board by the same call and does nothing else. They take turns.
func apiLists(ctx context.Context, b *apiRig, s apiScale) ([]figure, error) {
	progress("lists of %d tasks, by %d at once", listedTask, listers)
	bt, err := b.rig.makeTeam(ctx, b.conn, "lists")
	if err != nil {
		return nil, err
	}
	tm, err := b.client.Open(ctx, bt.ID)
	if err != nil {
		return nil, err
	}
	tasks := make([]team.NewTask, listedTask)
	for i := range tasks {
		tasks[i] = team.NewTask{Title: fmt.Sprint("task ", i), Description: words}
	}
	if _, _, err := tm.Board().Add(ctx, "", tasks...); err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	bare := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all, err := tm.Board().Tasks(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(all) // a client that leaves ends the bench
	})}
	go bare.Serve(ln)
	defer bare.Close()
	var ours, theirs []float64
	for range s.lists {
		for _, turn := range []struct {
			url  string
			into *[]float64
		}{{"http://" + ln.Addr().String() + "/", &theirs}, {b.url + "/v1/teams/lists/tasks", &ours}} {
			rate, err := b.requests(ctx, turn.url)
			if err != nil {
				return nil, err
			}
			*turn.into = append(*turn.into, rate)
		}
	}
	return []figure{measured("task_list_requests", harmonic(ours), "1/s").beside(harmonic(theirs))}, nil
}

// requests returns how many answers a second come from url.
func (b *apiRig) requests(ctx context.Context, url string) (float64, error) {
	var done atomic.Int64
	begun := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for range listers {
		g.Go(func() error {
			for time.Since(begun) < listFor {
				resp, err := b.get(ctx, url)
				if err != nil {
					return err
				}
				n, err := io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if err != nil || n < listedTask {
					return errors.Join(err, fmt.Errorf("%s: %d bytes", url, n))
				}
				done.Add(1)
			}
			return nil
		})
	}
	err := g.Wait()
	return float64(done.Load()) / time.Since(begun).Seconds(), err
}

// apiIdle measures what part of one processor the process takes while nobody asks.
func apiIdle(ctx context.Context, b *apiRig, s apiScale) ([]figure, error) {
	progress("an idle API: %v", s.idle)
	before, err := spent(b.leader.PID())
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(s.idle):
	}
	after, err := spent(b.leader.PID())
	return []figure{measured("api_idle_cpu", 100*(after-before).Seconds()/time.Since(begun).Seconds(), "%")}, err
}

// spent is the processors' time that a process has taken.
func spent(pid int) (time.Duration, error) {
	file := fmt.Sprintf("/proc/%d/stat", pid)
	stat, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	var user, system int64 // in ticks, of which Linux tells 100 a second
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("%s: %q", file, stat)
	}
	for i, into := range []*int64{&user, &system} {
		if *into, err = strconv.ParseInt(fields[11+i], 10, 64); err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
	}
	return time.Duration(user+system) * 10 * time.Millisecond, nil
}
