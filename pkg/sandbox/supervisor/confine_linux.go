package supervisor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"unsafe"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// confine confines the calling thread, and what it starts, for ever. Landlock and the
// capabilities of the rest of the process stay as they are: it has to end what is confined.
// That is why this uses the system calls of go-landlock: its Config confines all threads.
func confine(c Confinement) error {
	ruleset, err := rules(c)
	if err != nil {
		return err
	}
	defer unix.Close(ruleset)
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	if err := ll.LandlockRestrictSelf(ruleset, 0); err != nil {
		return fmt.Errorf("restrict by Landlock: %w", err)
	}
	return load(c.Filter)
}

// The rights of Landlock, by the ABI that has brought them. See landlock(7).
const (
	rightsToRead = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSReadDir
	rightsOfFile = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSIoctlDev
)

func handled(abi int) (a ll.RulesetAttr) {
	a.HandledAccessFS = 1<<13 - 1
	for _, later := range []struct {
		abi    int
		rights uint64
	}{{2, ll.AccessFSRefer}, {3, ll.AccessFSTruncate}, {5, ll.AccessFSIoctlDev}, {9, ll.AccessFSResolveUnix}} {
		if abi >= later.abi {
			a.HandledAccessFS |= later.rights
		}
	}
	if abi >= 4 {
		a.HandledAccessNet = ll.AccessNetBindTCP | ll.AccessNetConnectTCP
	}
	if abi >= 6 {
		a.Scoped = ll.ScopeAbstractUnixSocket | ll.ScopeSignal
	}
	return a
}

// rules returns a ruleset of Landlock.
func rules(c Confinement) (ruleset int, err error) {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0, fmt.Errorf("ask for Landlock: %w", err)
	}
	attr := handled(abi)
	if ruleset, err = ll.LandlockCreateRuleset(&attr, 0); err != nil {
		return 0, fmt.Errorf("make a Landlock ruleset: %w", err)
	}
	for _, grant := range []struct {
		paths  []string
		rights uint64
	}{
		{c.Read, rightsToRead},
		{c.Write, attr.HandledAccessFS &^ (ll.AccessFSIoctlDev | ll.AccessFSMakeChar | ll.AccessFSMakeBlock)},
		{c.Devices, ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSIoctlDev},
	} {
		for _, path := range grant.paths {
			if err := allow(ruleset, path, grant.rights&attr.HandledAccessFS); err != nil && !errors.Is(err, fs.ErrNotExist) {
				unix.Close(ruleset)
				return 0, fmt.Errorf("allow %s: %w", path, err)
			}
		}
	}
	return ruleset, nil
}

// allow adds a path to a ruleset.
func allow(ruleset int, path string, rights uint64) error {
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
	return ll.LandlockAddPathBeneathRule(ruleset, &ll.PathBeneathAttr{ParentFd: fd, AllowedAccess: rights}, 0)
}

// dropCapabilities takes all privileges from the thread; root's, too, in what it starts.
func dropCapabilities() error {
	for c := uintptr(0); c <= 63; c++ {
		// It fails after the last that the kernel knows. Who may not drop them has none
		// to lose, and no_new_privs keeps it so.
		if unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) != nil {
			break
		}
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	var none [2]unix.CapUserData
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return fmt.Errorf("drop the capabilities: %w", err)
	}
	return nil
}

// load has the kernel judge each system call of this thread, and what it starts, by a filter.
func load(filter []byte) error {
	const size = 8 // of one instruction
	if len(filter) < size {
		return errors.New("the filter of system calls is empty")
	}
	program := make([]unix.SockFilter, len(filter)/size)
	for i := range program {
		b := filter[i*size:]
		program[i] = unix.SockFilter{Code: binary.NativeEndian.Uint16(b), Jt: b[2], Jf: b[3], K: binary.NativeEndian.Uint32(b[4:])}
	}
	p := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&p)), 0, 0); err != nil {
		return fmt.Errorf("load the filter of system calls: %w", err)
	}
	return nil
}
