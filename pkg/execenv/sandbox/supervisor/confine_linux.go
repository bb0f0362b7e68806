package supervisor

import (
	"encoding/binary"
	"errors"
	"os"
	"syscall"
	"unsafe"
)

// confine confines the calling thread, and what it starts: by Landlock, by a filter of system calls, and by its capabilities.
func confine(filter []byte) error {
	if err := prctl(prSetNoNewPrivs, 1); err != nil {
		return os.NewSyscallError("set no_new_privs", err)
	}
	if err := dropCapabilities(); err != nil {
		return os.NewSyscallError("drop the capabilities", err)
	}
	if err := restrictSelf(rulesetFD); err != nil {
		return os.NewSyscallError("restrict by Landlock", err)
	}
	return load(filter)
}

// dropCapabilities takes all privileges from the thread; root's, too, in what it starts.
func dropCapabilities() error {
	for c := uintptr(0); c <= 63; c++ {
		// It fails after the last that the kernel knows, and for one who has none to lose.
		if prctl(prCapbsetDrop, c) != nil {
			break
		}
	}
	_ = prctl(prCapAmbient, prCapAmbientClear)
	return capset()
}

// load has the kernel judge each system call of this thread, and what it starts, by a filter.
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
