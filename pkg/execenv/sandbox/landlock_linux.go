package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"unsafe"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// divide returns the paths that commands may write at level Confined. Landlock only grants rights, for a folder with everything below
// it. So a folder with a read-only path is divided: its other entries are writable, the folder is not, and nothing directly in it can
// be created, renamed or removed. A symbolic link is no entry: its target is judged at its own place.
func (v view) divide() (write, divided []string, err error) {
	keep := slices.DeleteFunc(v.having(reads), func(path string) bool { _, err := os.Lstat(path); return err != nil })
	for todo := v.having(writes); len(todo) > 0; {
		path := todo[0]
		todo = todo[1:]
		if slices.Contains(keep, path) {
			continue
		}
		if !slices.ContainsFunc(keep, func(k string) bool { return below(k, path) }) {
			write = append(write, path)
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
		divided = append(divided, path)
		for _, e := range entries {
			if e.Type()&fs.ModeSymlink == 0 {
				todo = append(todo, filepath.Join(path, e.Name()))
			}
		}
	}
	return write, divided, nil
}

// The rights of Landlock, by the ABI that introduced them. See landlock(7).
const (
	rightsToRead = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	rightsOfFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

func handled(abi int) (a unix.LandlockRulesetAttr) {
	a.Handled_access_fs = 1<<13 - 1
	for _, later := range []struct {
		abi    int
		rights uint64
	}{{2, unix.LANDLOCK_ACCESS_FS_REFER}, {3, unix.LANDLOCK_ACCESS_FS_TRUNCATE}, {5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV}, {9, unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX}} {
		if abi >= later.abi {
			a.Handled_access_fs |= later.rights
		}
	}
	if abi >= 4 {
		a.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= 6 {
		a.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	return a
}

// ruleset returns the view as a Landlock ruleset, without missing paths. divided: the workspace is divided.
func (v view) ruleset() (file *os.File, divided bool, err error) {
	write, parts, err := v.divide()
	if err != nil {
		return nil, false, err
	}
	abi, err := landlockABI()
	if err != nil {
		return nil, false, fmt.Errorf("ask for Landlock: %w", err)
	}
	attr := handled(abi)
	set, err := createRuleset(attr)
	if err != nil {
		return nil, false, fmt.Errorf("make a Landlock ruleset: %w", err)
	}
	file = os.NewFile(uintptr(set), "ruleset")
	for _, grant := range []struct {
		paths  []string
		rights uint64
	}{
		{slices.Concat(readable(), v.having(reads), parts), rightsToRead},
		{write, attr.Handled_access_fs &^ (unix.LANDLOCK_ACCESS_FS_IOCTL_DEV | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK)},
		{devices, unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
	} {
		for _, path := range grant.paths {
			if err := permit(set, path, grant.rights&attr.Handled_access_fs); err != nil && !errors.Is(err, fs.ErrNotExist) {
				file.Close()
				return nil, false, fmt.Errorf("allow %s: %w", path, err)
			}
		}
	}
	return file, slices.Contains(parts, v.dir), nil
}

// permit adds a path to a ruleset.
func permit(ruleset int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return err
	}
	if info.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= rightsOfFile // the kernel refuses rights of folders
	}
	return addRule(ruleset, unix.LandlockPathBeneathAttr{Parent_fd: int32(fd), Allowed_access: rights})
}

// landlockABI returns the version of Landlock that the kernel has. Errors: ENOSYS without it, EOPNOTSUPP if it is turned off.
func landlockABI() (int, error) {
	version, _, err := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	return int(version), failed(err)
}

func createRuleset(a unix.LandlockRulesetAttr) (ruleset int, err error) {
	const size = unsafe.Offsetof(a.Scoped) + unsafe.Sizeof(a.Scoped) // fields of later kernels would be refused
	fd, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&a)), size, 0)
	return int(fd), failed(e)
}

func addRule(ruleset int, a unix.LandlockPathBeneathAttr) error {
	_, _, err := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&a)), 0, 0, 0)
	return failed(err)
}

func failed(err syscall.Errno) error {
	if err != 0 {
		return err
	}
	return nil
}

// refused are system calls that have led out of sandboxes, or affect the whole machine.
var refused = []string{
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd", "move_pages", "migrate_pages", // other processes
	"add_key", "request_key", "keyctl", // keyrings have no namespace
	"io_uring_setup", "io_uring_enter", "io_uring_register", // does what this filter refuses, unseen
	"bpf", "perf_event_open", "userfaultfd", "fanotify_init", "lookup_dcookie", "syslog",
	"unshare", "setns", // namespaces, in which a command has all privileges
	"mount", "umount", "umount2", "pivot_root", "chroot", "mount_setattr", "move_mount", "open_tree", "open_tree_attr",
	"fsopen", "fsconfig", "fsmount", "fspick", "open_by_handle_at", "quotactl", "quotactl_fd", "swapon", "swapoff",
	"reboot", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "create_module",
	"acct", "settimeofday", "clock_settime", "clock_settime64", "clock_adjtime", "stime", "sethostname", "setdomainname", "iopl", "ioperm", "vhangup", "nfsservctl",
}

// refusedConfined are system calls that only namespaces make harmless.
var refusedConfined = []string{"socket", "socketcall", "connect", "bind", "listen", "shmget", "shmat", "shmctl", "msgget", "msgsnd", "msgrcv", "msgctl",
	"semget", "semop", "semtimedop", "semctl", "mq_open", "mq_unlink"}

// attributes are the calls that change attributes of files, such as access lists: Landlock does not check them outside.
var attributes = []string{"setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr", "fremovexattr", "removexattrat"}

const (
	allow = uint32(unix.SECCOMP_RET_ALLOW)
	// kill is for another architecture, where the numbers of system calls differ.
	kill = uint32(unix.SECCOMP_RET_KILL_PROCESS)
	deny = uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.EPERM)
	// unknown makes a program try the older call.
	unknown = uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.ENOSYS)

	// unsupported makes a program that keeps the attributes of a file, such as cp -p, continue without.
	unsupported = uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.EOPNOTSUPP)

	// mostSegment bounds a segment of System V shared memory, which is not counted while no process maps it: 4,096 of them, the
	// most of a namespace, are the default limit of memory.
	mostSegment = 1 << 20

	newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWTIME
	socketType    = 0xf // without flags such as SOCK_CLOEXEC
)

// The filters of the levels, as bytes of struct sock_filter.
var (
	confinedFilter   = sync.OnceValues(func() (string, error) { return filter(append(refusedConfined, refused...), false) })
	bubblewrapFilter = sync.OnceValues(func() (string, error) { return filter(refused, true) })
)

// filter returns a program that refuses the named system calls, and some by their arguments. With sockets, sockets of the families
// that the network namespace separates are allowed.
func filter(names []string, sockets bool) (string, error) {
	machine, err := arch.GetInfo("")
	if err != nil {
		return "", fmt.Errorf("the system calls of this machine are not known: %w", err)
	}
	f := program{numbers: machine.SyscallNames}
	// Names that this architecture does not have are left out; all architectures have these.
	for _, name := range []string{"ptrace", "clone", "clone3", "ioctl", "socket", "socketpair", "unshare", "mount"} {
		if _, ok := f.numbers[name]; !ok {
			return "", fmt.Errorf("the system call %s of %s is not known", name, machine.Name)
		}
	}
	f.add(bpf.LoadAbsolute{Off: 4, Size: 4}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(machine.ID), SkipTrue: 1}, bpf.RetConstant{Val: kill}, load)
	if machine == arch.X86_64 { // the same architecture to the kernel, with other numbers
		f.add(bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: uint32(arch.X32.SeccompMask), SkipFalse: 1}, bpf.RetConstant{Val: unknown})
	}
	for _, name := range names {
		f.on(name, bpf.RetConstant{Val: deny})
	}
	f.on("clone3", bpf.RetConstant{Val: unknown}) // its flags are behind a pointer
	f.on("clone", argument(0), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: newNamespaces, SkipFalse: 1}, bpf.RetConstant{Val: deny})
	// These put input into a terminal. The kernel reads 32 bits of the number.
	f.on("ioctl", argument(1), bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.TIOCSTI, SkipTrue: 1}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.TIOCLINUX, SkipFalse: 1}, bpf.RetConstant{Val: deny})
	if sockets {
		f.on("shmget", upper(1), bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 2}, argument(1), bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: mostSegment, SkipFalse: 1}, bpf.RetConstant{Val: deny})
		f.on("socket", argument(0), bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_UNIX, SkipTrue: 3}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET, SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET6, SkipTrue: 1}, bpf.RetConstant{Val: deny})
	} else {
		// A pair of datagram sockets can send to any path.
		f.on("socketpair", argument(1), bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: socketType}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_STREAM, SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_SEQPACKET, SkipTrue: 1}, bpf.RetConstant{Val: deny},
			argument(0), bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_UNIX, SkipTrue: 1}, bpf.RetConstant{Val: deny})
		// Of another process: without CPU time left the kernel kills it, or it gets no share of the processors.
		for _, name := range []string{"prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"} {
			f.on(name, only(0, 0)...)
		}
		f.on("setpriority", append(only(0, unix.PRIO_PROCESS), only(1, 0)...)...)
		f.on("ioprio_set", append(only(0, ioprioProcess), only(1, 0)...)...)
		for _, name := range attributes {
			f.on(name, bpf.RetConstant{Val: unsupported})
		}
		// A file outside, whose mode Landlock does not check, would run with its owner's rights.
		for name, mode := range map[string]uint32{"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2} {
			f.on(name, argument(mode), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.S_ISUID | unix.S_ISGID, SkipFalse: 1}, bpf.RetConstant{Val: deny})
		}
	}
	f.add(bpf.RetConstant{Val: allow})
	return f.bytes()
}

// ioprioProcess is IOPRIO_WHO_PROCESS of ioprio_set(2).
const ioprioProcess = 1

// only refuses a call if an argument has another value.
func only(arg, value uint32) []bpf.Instruction {
	return []bpf.Instruction{argument(arg), bpf.JumpIf{Cond: bpf.JumpEqual, Val: value, SkipTrue: 1}, bpf.RetConstant{Val: deny}}
}

// load loads the number of the system call.
var load = bpf.LoadAbsolute{Off: 0, Size: 4}

// argument loads the lower half of an argument. See seccomp(2): struct seccomp_data.
func argument(i uint32) bpf.Instruction {
	offset := 16 + 8*i
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 { // big endian
		offset += 4
	}
	return bpf.LoadAbsolute{Off: offset, Size: 4}
}

// upper loads the upper half of an argument.
func upper(i uint32) bpf.Instruction {
	half := argument(i).(bpf.LoadAbsolute)
	half.Off ^= 4
	return half
}

// program is a filter under construction.
type program struct {
	numbers map[string]int
	code    []bpf.Instruction
}

func (p *program) add(code ...bpf.Instruction) { p.code = append(p.code, code...) }

// on adds code for one system call, followed by the rest unless it returns. The number is loaded before and after.
func (p *program) on(name string, code ...bpf.Instruction) {
	number, ok := p.numbers[name]
	if !ok {
		return
	}
	if len(code) > 1 {
		code = append(code, load)
	}
	p.add(bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(number), SkipFalse: uint8(len(code))})
	p.add(code...)
}

// bytes assembles the program.
func (p *program) bytes() (string, error) {
	var out []byte
	raw, err := bpf.Assemble(p.code)
	if err != nil {
		return "", fmt.Errorf("the filter of system calls: %w", err)
	}
	for _, in := range raw {
		out = binary.NativeEndian.AppendUint16(out, in.Op)
		out = append(out, in.Jt, in.Jf)
		out = binary.NativeEndian.AppendUint32(out, in.K)
	}
	return string(out), nil
}
