package local

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// holders returns the processes that hold an end of the pipe, without this one: every process of
// the cluster, also a frozen one, or one whose parent has died so that no other process knows it.
// Tools do not inherit the pipe. Without /proc the result is empty.
func holders(pipe *os.File) (pids []int) {
	info, err := pipe.Stat()
	if err != nil {
		return nil
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	link := fmt.Sprintf("pipe:[%d]", stat.Ino)
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/[0-9]*")
	last := os.Getpid()
	for _, fd := range fds {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(fd))))
		if err != nil || pid == last || pid == os.Getpid() {
			continue
		}
		if to, err := os.Readlink(fd); err == nil && to == link {
			pids, last = append(pids, pid), pid
		}
	}
	return pids
}

// endOrphans waits for teammates whose leader died before it could, and kills those that do not
// end.
func endOrphans(lifeline *os.File, wait time.Duration) {
	limit := time.Now().Add(wait)
	for {
		left := holders(lifeline)
		if len(left) == 0 {
			return
		}
		if time.Now().After(limit) {
			for _, pid := range left {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
}
