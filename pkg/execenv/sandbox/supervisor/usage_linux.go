package supervisor

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

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
		if all = append(all, p); len(all) > s.Processes { // the rest may be thousands
			return Processes
		}
	}
	mapped, threads := usage(all, "status", "RssAnon:", "RssShmem:", "VmSwap:"), usage(all, "status", "Threads:")
	if threads > int64(s.Threads) {
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
