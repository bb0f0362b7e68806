package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// heldScript has coders do tasks, each by a command that makes the file begun, waits for one named go
// and ends with then.
func heldScript(tasks, coders int, then string) string {
	var make strings.Builder
	for n := range tasks {
		fmt.Fprintf(&make, "              - {tool: create_task, args: {title: task %d}}\n", n+1)
	}
	make.WriteString(strings.Repeat("              - {tool: spawn_teammate, args: {role: coder}}\n", coders))
	return `
agents:
  - match: {role: leader}
    rules:
      - name: lead
        since: '<mail from="user"'
        steps:
          - calls:
` + make.String() + `          - await: 'All Idle'
            waiting: I wait.
            calls: [{tool: finish_team, args: {summary: All is done.}}]
  - match: {role: coder}
    rules:
      - name: work
        since: '<task id="(?P<task>T-\d+)"'
        steps:
          - calls: [{tool: bash, args: {command: "touch begun; until [ -e go ]; do sleep 0.05; done` + then + `", timeout: 600}}]
          - calls: [{tool: update_task, args: {task_id: "{{.Match.task}}", status: completed, result_summary: "Done."}}]
          - say: Done.
      - name: rest
        say: Nothing to do.
`
}

// While the disk of the embedded server is full, every write is refused at once, and status
// and the health page say why. A task that ends meanwhile is not lost: once there is room, its
// holder writes that, and the team goes on.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 160)
	c := upAt(t, rehearse(t, heldScript(2, 1, "")), 1, "AGENTTEAM_DATA_DIR="+disk)
	run := c.begin("go")
	until(t, "the coder is at work", func() bool { _, err := os.Stat(filepath.Join(c.dir, "begun")); return err == nil })

	stream := c.follow("attach")
	until(t, "the work is shown", func() bool { return strings.Contains(stream.out.String(), "touch begun") })
	fill(t, filepath.Join(disk, "fill"))
	until(t, "who follows the goal is told", func() bool {
		return strings.Contains(stream.errs.String(), "storage is full") && strings.Contains(stream.errs.String(), "the team waits until the server stores again")
	})
	until(t, "tasks add is refused", func() bool {
		cmd := c.command("tasks", "add", "--title", "three")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		exit := (*exec.ExitError)(nil)
		return errors.As(cmd.Run(), &exit) && exit.ExitCode() == team.ExitCode(team.Unavailable) && strings.Contains(stderr.String(), "storage is full")
	})
	until(t, "status says why", func() bool { return strings.Contains(c.ok("status"), "storage is full") })
	cl, _, err := config.FindCluster(c.dir)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the leader is not ready", func() bool {
		resp, err := http.Get(cl.HTTP + "/readyz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusServiceUnavailable
	})
	if err := os.WriteFile(filepath.Join(c.dir, "go"), nil, 0o644); err != nil { // the task ends, which cannot be stored
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(disk, "fill")); err != nil {
		t.Fatal(err)
	}
	r := run.end(t)
	if code := wait(t, stream.Cmd); code != 0 || strings.Count(stream.errs.String(), "storage is full") != 1 {
		t.Errorf("attach ends with %d and says\n%s", code, stream.errs.String())
	}
	for _, task := range r.Tasks {
		if task.Status == team.Completed && task.Attempts > 0 {
			t.Errorf("%s counts %d attempts", task.ID, task.Attempts)
		}
	}
	if r.Summary != "All is done." || len(r.Tasks) < 2 || r.Tasks[0].Status != team.Completed || r.Tasks[1].Status != team.Completed {
		t.Errorf("the goal ends with %+v", r)
	}
}

// smallDisk mounts a disk of so many MiB that the test may fill, and returns its folder. Each
// team reserves 64 of them for its events, out of three quarters.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprintf("size=%dm", size)); errors.Is(err, unix.EPERM) {
		t.Skip("only root may mount the small disk that this test fills")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return disk
}

// A NATS server that nobody mends stores nothing in the streams that met the end of its disk.
// One member has tried: every process says so, also those that write nothing there, and ends to
// say so once the server was restarted.
func TestFullDiskOfAnotherServer(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 240)
	nats := brokertest.NewClusterIn(t, disk, 1)
	// The command prints more than is left of a block of the server's that is laid out already.
	c := folder(t, rehearse(t, heldScript(1, 1, "; yes | head -c 25000")), "NATS_URL="+nats.URL())
	conn := dial(t, nats.URL())
	newTeam(t, conn, "quiet")
	c.start("leader", "--team", "quiet")
	until(t, "the first leader process leads", func() bool { // else the other one may, and this one ends
		all, err := conn.Processes(t.Context())
		return err == nil && len(all.Leaders) == 1 && len(all.Leaders[0].Memberships) == 1
	})
	c.start("leader")
	c.start("teammate", "--team", "quiet", "--name", "alice", "--role", "coder")
	for range 2 {
		c.start("teammate")
	}
	var s client.Status
	stand := func(members, standbys int) func() bool {
		return func() (ok bool) {
			var err error
			s, err = conn.Processes(t.Context())
			return err == nil && len(s.Leaders) == 2 && len(s.Members) == members && len(s.Standbys) == standbys
		}
	}
	until(t, "all processes answer", stand(1, 2))
	run := c.begin("go")
	until(t, "the coder is at work", func() bool { _, err := os.Stat(filepath.Join(c.dir, "begun")); return err == nil })
	until(t, "a standby has become the coder", stand(2, 1))
	ready := func(want int) func() bool {
		return func() bool {
			return !slices.ContainsFunc(slices.Concat(s.Leaders, s.Members, s.Standbys), func(p control.Process) bool {
				return status(strings.TrimSuffix(p.Metrics, "/metrics")+"/readyz") != want
			})
		}
	}
	until(t, "all are ready", ready(http.StatusOK))
	stream := c.follow("attach")
	until(t, "the work is shown", func() bool { return strings.Contains(stream.out.String(), "touch begun") })
	fill(t, filepath.Join(disk, "fill"))
	if err := os.WriteFile(filepath.Join(c.dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	until(t, "none is ready", ready(http.StatusServiceUnavailable))
	until(t, "who follows the goal is told", func() bool {
		return strings.Contains(stream.errs.String(), "stores nothing in the stream") && strings.Contains(stream.errs.String(), "then restart it")
	})
	for what, says := range map[string]func() string{ // all in the same words
		"readyz": func() string { return pageAt(strings.TrimSuffix(s.Leaders[0].Metrics, "/metrics") + "/readyz") },
		"status": func() string { return c.ok("status") },
		"doctor": func() string { out, _ := c.command("doctor").CombinedOutput(); return string(out) },
	} {
		text := ""
		until(t, what+" says which stream, and what to do", func() bool {
			text = says()
			return strings.Contains(text, "stores nothing in the stream") && strings.Contains(text, "make room on its disk, then restart it")
		})
		if strings.Contains(text, "nats: ") {
			t.Errorf("%s says %s", what, text)
		}
	}
	if err := os.Remove(filepath.Join(disk, "fill")); err != nil {
		t.Fatal(err)
	}
	nats.Kill(0)
	nats.Restart(0)
	until(t, "all are ready again", ready(http.StatusOK))
	if r := run.end(t); r.Summary != "All is done." || len(r.Tasks) != 1 || r.Tasks[0].Attempts != 0 {
		t.Errorf("the goal ends with %+v", r)
	}
	if code := wait(t, stream.Cmd); code != 0 {
		t.Errorf("attach ends with %d and says\n%s", code, stream.errs.String())
	}
}

// fill writes a file until the disk has no room left.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 1<<20); err == nil; {
		if _, err = f.Write(block); err != nil && len(block) > 1 {
			block, err = block[:len(block)/2], nil
		}
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
}

// pageAt is what is at an address, "" if there is no answer.
func pageAt(url string) string {
	resp, err := http.Get(url)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return string(text)
}
