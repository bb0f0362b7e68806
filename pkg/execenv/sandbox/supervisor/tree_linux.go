package supervisor

import (
	"bytes"
	"iter"
	"os"
	"strconv"
	"syscall"
)

// process is a process below this one. Its start time distinguishes it from a later one with its number.
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

// killDescendants kills every process below this one, after stopping it: one that starts others would outrun a single pass.
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

// descendants yields the processes below this one; see [below].
func descendants() iter.Seq[process] { return below(os.Getpid(), children, stat) }

// below yields the processes below one, parents first, also uncollected ones. A collected one has no start: its number may be
// another's.
func below(root int, children func(pid int) []int, stat func(pid int) (parent int, start string, ok bool)) iter.Seq[process] {
	return func(yield func(process) bool) {
		_, start, _ := stat(root)
		ours := map[int]bool{root: true} // an orphan is given to one of them
		for queue := []process{{root, start}}; len(queue) > 0; queue = queue[1:] {
			listed := children(queue[0].pid)
			if len(listed) == 0 {
				continue
			}
			if _, start, ok := stat(queue[0].pid); ok && start != queue[0].start {
				continue // another process, whose children these are
			}
			for _, pid := range listed {
				p := process{pid: pid}
				if parent, start, ok := stat(pid); ok && ours[parent] {
					p.start, ours[pid] = start, true
					queue = append(queue, p)
				}
				if !yield(p) {
					return
				}
			}
		}
	}
}

// proc returns the path of a file that the kernel shows for a process.
func proc(pid int, file string) string { return "/proc/" + strconv.Itoa(pid) + "/" + file }

// children returns the processes that the threads of a process have started.
func children(pid int) (all []int) {
	threads, err := os.ReadDir(proc(pid, "task"))
	if err != nil {
		return nil // it has ended
	}
	for _, t := range threads {
		list, _ := os.ReadFile(proc(pid, "task/"+t.Name()+"/children"))
		for _, word := range bytes.Fields(list) {
			if child, err := strconv.Atoi(string(word)); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

// stat returns the parent and the start time of a process. See proc_pid_stat(5).
func stat(pid int) (parent int, start string, ok bool) {
	line, err := os.ReadFile(proc(pid, "stat"))
	if err != nil {
		return 0, "", false
	}
	// The name, in parentheses, may contain anything.
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	if len(fields) < 20 {
		return 0, "", false
	}
	parent, err = strconv.Atoi(string(fields[1]))
	return parent, string(fields[19]), err == nil
}
