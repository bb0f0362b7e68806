package supervisor

import (
	"encoding/binary"
	"errors"
	"os"
	"syscall"
	"unsafe"
)

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
