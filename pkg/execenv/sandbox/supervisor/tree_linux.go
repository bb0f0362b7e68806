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

// meter measures the resources of a command.
type meter struct {
	spec  Spec
	looks int
	files int64 // as of the last look at them
}

// lookAtFiles is how many counts there are for each one of the open files of all processes, which may be thousands.
const lookAtFiles = 4

// exceeded returns the limit that the command has exceeded.
func (m *meter) exceeded() End {
	s := m.spec
	var all []process
	for p := range descendants() {
		if all = append(all, p); int64(len(all)) > s.Processes { // the rest may be thousands
			return Processes
		}
	}
	mapped, threads := usage(all, "status", "RssAnon:", "RssShmem:", "VmSwap:"), usage(all, "status", "Threads:")
	if threads > s.Threads {
		return Threads
	}
	if m.looks++; m.looks%lookAtFiles == 0 {
		m.files = filesInMemory(all, len(s.Under) > 0)
	}
	if (mapped<<10)+m.files <= s.Memory {
		return ByItself
	}
	// Only smaps_rollup, which costs more, counts shared memory once; m.files has the mapped files in memory.
	mapped = usage(all, "smaps_rollup", "Pss_Anon:", "Pss_Shmem:", "SwapPss:") - mappedFiles(all)
	if (mapped<<10)+m.files > s.Memory {
		return Memory
	}
	return ByItself
}

// of returns a file of a process, empty if the process has ended.
func (p process) of(file string) []byte {
	text, _ := os.ReadFile(proc(p.pid, file))
	if _, start, ok := stat(p.pid); !ok || start != p.start {
		return nil // maybe another's
	}
	return text
}

// usage sums lines such as "RssAnon:   1234 kB" of a file of each process.
func usage(all []process, file string, names ...string) (sum int64) {
	for _, p := range all {
		for line := range bytes.Lines(p.of(file)) {
			for _, name := range names {
				if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
					sum += number(rest)
				}
			}
		}
	}
	return sum
}

// number parses "   1234 kB", or without the unit.
func number(text []byte) int64 {
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(text), []byte("kB")))), 10, 64)
	return n
}

// memfd begins the name of a file in memory without a path; see memfd_create(2). posix is the folder of shm_open(3).
var memfd, posix = []byte("/memfd:"), []byte("/dev/shm/")

// filesInMemory returns the bytes of files in memory, mapped or not: open ones of memfd_create, and in a bubblewrap box those on its
// file systems in memory.
func filesInMemory(all []process, box bool) (sum int64) {
	type file struct{ dev, ino uint64 }
	seen, systems := map[file]bool{}, map[syscall.Fsid]bool{}
	for _, p := range all {
		open, err := os.ReadDir(proc(p.pid, "fd"))
		if err != nil {
			continue
		}
		for _, fd := range open {
			path := proc(p.pid, "fd/"+fd.Name())
			var st syscall.Stat_t
			if name, err := os.Readlink(path); err != nil || !bytes.HasPrefix([]byte(name), memfd) || syscall.Stat(path, &st) != nil || seen[file{uint64(st.Dev), st.Ino}] {
				continue
			}
			seen[file{uint64(st.Dev), st.Ino}] = true
			sum += st.Blocks * 512
		}
		inBox := box && namespace(p.pid) != namespace(os.Getpid())
		for _, at := range []string{"root", "root/dev", "root/dev/shm"} {
			var st syscall.Statfs_t
			if inBox && syscall.Statfs(proc(p.pid, at), &st) == nil && int64(st.Type) == tmpfs && st.Blocks > 0 && !systems[st.Fsid] {
				systems[st.Fsid] = true
				sum += int64(st.Blocks-st.Bfree) * int64(st.Bsize)
			}
		}
	}
	return sum
}

// namespace identifies the mounts that a process sees.
func namespace(pid int) string {
	name, _ := os.Readlink(proc(pid, "ns/mnt")) // empty for one that has ended
	return name
}

// tmpfs is TMPFS_MAGIC of statfs(2).
const tmpfs = 0x01021994

// mappedFiles returns the kB that processes map of the files that filesInMemory counts.
func mappedFiles(all []process) (sum int64) {
	for _, p := range all {
		counts := false
		for line := range bytes.Lines(p.of("smaps")) {
			if fields := bytes.Fields(line); len(fields) >= 6 && bytes.IndexByte(fields[0], '-') > 0 { // the head of a mapping
				counts = bytes.HasPrefix(fields[5], memfd) || bytes.HasPrefix(fields[5], posix)
			}
			if rest, ok := bytes.CutPrefix(line, []byte("Pss:")); ok && counts {
				sum += number(rest)
			}
		}
	}
	return sum
}
