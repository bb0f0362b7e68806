package supervisor

import (
	"bytes"
	"fmt"
	"iter"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// process is one of the processes below this one. Its start tells it from a later one that
// has its number.
type process struct {
	pid   int
	start string // in clock ticks since the boot
}

// signal sends a signal, if the process is still the one that was listed.
func (p process) signal(sig syscall.Signal) {
	handle, err := os.FindProcess(p.pid) // holds on to this one process, whatever becomes of the number
	if err != nil {
		return
	}
	defer handle.Release()
	if _, start, ok := stat(p.pid); ok && start == p.start {
		_ = handle.Signal(sig) // fails only if it has ended
	}
}

// killDescendants kills every process below this one. They are stopped first: one that
// starts others all the time would outrun a single pass.
func killDescendants() {
	stopped := map[process]bool{}
	for fresh := true; fresh; {
		fresh = false
		for p := range descendants() {
			if !stopped[p] {
				p.signal(syscall.SIGSTOP)
				stopped[p], fresh = true, true
			}
		}
	}
	for p := range descendants() {
		p.signal(syscall.SIGKILL)
	}
}

// descendants yields the processes below this one, parents first, those that have ended but are
// not yet collected among them.
func descendants() iter.Seq[process] {
	return func(yield func(process) bool) {
		queue := []int{os.Getpid()}
		for len(queue) > 0 {
			parent := queue[0]
			queue = queue[1:]
			for _, pid := range children(parent) {
				// Since it was listed it may have ended, and its number be another's.
				of, start, ok := stat(pid)
				switch {
				case !ok || of != parent:
				case !yield(process{pid, start}):
					return
				default:
					queue = append(queue, pid)
				}
			}
		}
	}
}

// children returns the processes that the threads of a process have started.
func children(pid int) (all []int) {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil // it has ended
	}
	for _, t := range threads {
		list, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, t.Name()))
		for _, word := range strings.Fields(string(list)) {
			if child, err := strconv.Atoi(word); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

// stat returns who started a process, and when. See proc_pid_stat(5).
func stat(pid int) (parent int, start string, ok bool) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, "", false
	}
	// The name, in parentheses, may contain anything.
	fields := strings.Fields(string(line[bytes.LastIndexByte(line, ')')+1:]))
	if len(fields) < 20 {
		return 0, "", false
	}
	parent, err = strconv.Atoi(fields[1])
	return parent, fields[19], err == nil
}

// exceeded returns the limit that the command has passed. Processes are counted as they are listed: those of a fork bomb
// have ended before they could be looked at one by one.
func exceeded(s Spec) End {
	var all []int
	for queue := []int{os.Getpid()}; len(queue) > 0; queue = queue[1:] {
		listed := children(queue[0])
		if all = append(all, listed...); len(all) > s.Processes { // the rest may be thousands
			return Processes
		}
		queue = append(queue, listed...)
	}
	// What processes share is counted once only in smaps_rollup, which costs more to read.
	if usage(all, "status", "RssAnon:", "RssShmem:", "VmSwap:") > s.Memory &&
		usage(all, "smaps_rollup", "Pss_Anon:", "Pss_Shmem:", "SwapPss:") > s.Memory {
		return Memory
	}
	return ByItself
}

// usage sums lines such as "RssAnon:   1234 kB" of a file of each process, in bytes.
func usage(all []int, file string, names ...string) (sum int64) {
	for _, pid := range all {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file)) // empty for one that has ended
		for line := range strings.Lines(string(text)) {
			for _, name := range names {
				if rest, ok := strings.CutPrefix(line, name); ok {
					kB, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
					sum += kB << 10
				}
			}
		}
	}
	return sum
}
