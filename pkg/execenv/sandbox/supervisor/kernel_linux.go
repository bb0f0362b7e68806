package supervisor

import (
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// What package syscall lacks. Go would initialise golang.org/x/sys/unix, and the many packages before it, in each supervisor; see
// TestImportsLittle. The numbers are the same on all machines for which package sandbox makes filters.
const (
	sysCloseRange           = 436
	sysLandlockRestrictSelf = 446

	closeRangeCloexec = 4

	prSetSeccomp        = 22
	prCapbsetDrop       = 24
	prSetChildSubreaper = 36
	prSetNoNewPrivs     = 38
	prCapAmbient        = 47
	prCapAmbientClear   = 4

	seccompModeFilter = 2

	capabilityVersion3 = 0x20080522

	waitAll    = 0          // P_ALL of waitid(2)
	waitPid    = 1          // P_PID
	waitExited = 4          // WEXITED
	waitLeave  = 0x01000000 // WNOWAIT
)

// prctl changes the calling thread, or its process; see prctl(2).
//
//go:uintptrescapes
func prctl(option int, args ...uintptr) error {
	var a [4]uintptr
	copy(a[:], args)
	_, _, err := syscall.RawSyscall6(syscall.SYS_PRCTL, uintptr(option), a[0], a[1], a[2], a[3], 0)
	return failed(err)
}

// closeOnExec marks every file from a descriptor on to be closed in children of this process.
func closeOnExec(first int) error {
	_, _, err := syscall.RawSyscall(sysCloseRange, uintptr(first), ^uintptr(0)>>32, closeRangeCloexec)
	return failed(err)
}

// restrictSelf restricts the calling thread by a ruleset of Landlock; see landlock_restrict_self(2).
func restrictSelf(ruleset int) error {
	_, _, err := syscall.RawSyscall(sysLandlockRestrictSelf, uintptr(ruleset), 0, 0)
	return failed(err)
}

// capset takes all capabilities from the calling thread; see capset(2).
func capset() error {
	header := struct {
		version uint32
		pid     int32
	}{version: capabilityVersion3}
	var none [2]struct{ effective, permitted, inheritable uint32 }
	_, _, err := syscall.RawSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none)), 0)
	runtime.KeepAlive(&none)
	return failed(err)
}

// siginfo is the result of waitid(2): behind three numbers, aligned as a pointer, the process. See sigaction(2).
type siginfo struct {
	signo, errno, code int32
	_                  [0]uintptr
	pid                int32
	_                  [128 - 4*4 - unsafe.Sizeof(uintptr(0))/8*4]byte
}

// waitid waits for a process that ends, or polls with [syscall.WNOHANG]; see waitid(2).
func waitid(of, id int, info *siginfo, options int) error {
	_, _, err := syscall.Syscall6(syscall.SYS_WAITID, uintptr(of), uintptr(id), uintptr(unsafe.Pointer(info)), uintptr(options), 0, 0)
	return failed(err)
}

func failed(err syscall.Errno) error {
	if err != 0 {
		return err
	}
	return nil
}

// confine confines the calling thread, and its children: by Landlock, by a filter of system calls, and by its capabilities.
func confine(filter []byte) error {
	if err := prctl(prSetNoNewPrivs, 1); err != nil {
		return os.NewSyscallError("set no_new_privs", err)
	}
	if err := dropCapabilities(); err != nil {
		return os.NewSyscallError("drop the capabilities", err)
	}
	if err := restrictSelf(moreFD); err != nil {
		return os.NewSyscallError("restrict by Landlock", err)
	}
	return load(filter)
}

// dropCapabilities takes all privileges from the thread, and root's from its children.
func dropCapabilities() error {
	for c := uintptr(0); c <= 63; c++ {
		// It fails after the last capability that the kernel has, and for a process without any.
		if prctl(prCapbsetDrop, c) != nil {
			break
		}
	}
	_ = prctl(prCapAmbient, prCapAmbientClear)
	return capset()
}

// load makes the kernel check each system call of this thread and its children by a filter.
func load(filter []byte) error {
	const size = 8 // of one instruction
	if len(filter) < size {
		return errors.New("the filter of system calls is empty")
	}
	program := make([]syscall.SockFilter, len(filter)/size)
	for i := range program {
		b := filter[i*size:]
		program[i] = syscall.SockFilter{Code: binary.NativeEndian.Uint16(b), Jt: b[2], Jf: b[3], K: binary.NativeEndian.Uint32(b[4:])}
	}
	p := syscall.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := prctl(prSetSeccomp, seccompModeFilter, uintptr(unsafe.Pointer(&p))); err != nil {
		return os.NewSyscallError("load the filter of system calls", err)
	}
	return nil
}
