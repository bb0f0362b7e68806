package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"agentteam/pkg/team"
)

// Sizes of the file systems in memory, in bytes; no limit of a command counts them.
const (
	temporary = "1073741824"
	shared    = "268435456" // /dev/shm
)

// bubblewrap returns bubblewrap's options for a command that starts in dir, and the files that they copy from descriptors beginning
// with fd. The options are passed in a file: the list of processes does not show the environment.
func (v view) bubblewrap(dir string, fd int) (options, copied []string, err error) {
	options = []string{
		"--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session",
		"--cap-drop", "ALL", "--seccomp", "3",
	}
	system, copied := tree(fd)
	options = append(options, system...)
	options = append(options, "--size", shared, "--tmpfs", "/dev/shm")
	if v.temp != "/tmp" {
		options = append(options, "--perms", "1777", "--size", temporary, "--tmpfs", "/tmp")
	}
	var hidden []string // folders
	for _, p := range v.mounts() {
		switch p.access {
		case writes:
			options = append(options, "--bind-try", p.from, p.path)
		case reads:
			options = append(options, "--ro-bind-try", p.from, p.path)
		case hides:
			info, err := os.Lstat(p.path)
			// A command must not create it. If this process cannot create it, no command can.
			if errors.Is(err, fs.ErrNotExist) && os.Mkdir(p.path, 0o700) == nil {
				info, err = os.Lstat(p.path)
			}
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				return nil, nil, fmt.Errorf("hide %s: %w", p.path, err)
			case info.IsDir():
				options, hidden = append(options, "--tmpfs", p.path), append(hidden, p.path)
			case info.Mode()&os.ModeSymlink == 0: // the end of a link is not there, untouched has seen that
				options = append(options, "--ro-bind", "/dev/null", p.path)
			}
		}
	}
	for _, path := range append([]string{"/dev", "/"}, hidden...) { // what was made for mount points is in memory
		options = append(options, "--remount-ro", path)
	}
	options = append(options, "--chdir", dir, "--clearenv")
	for _, entry := range v.env {
		name, value, _ := strings.Cut(entry, "=")
		options = append(options, "--setenv", name, value)
	}
	if i := slices.IndexFunc(options, func(o string) bool { return strings.ContainsRune(o, 0) }); i >= 0 {
		return nil, nil, team.Errorf(team.InvalidArgument, "a path or a variable of a command holds a zero byte: %q", options[i])
	}
	return options, copied, nil
}

// mounts returns the places, and the folders between a writable place and a read-only one in it: a mount point cannot be renamed, the
// folder around it could be.
func (v view) mounts() []place {
	all := slices.Clone(v.places)
	var held []string
	for _, p := range v.places {
		if p.access == reads && p.from == p.path {
			held = append(held, p.path)
		}
	}
	for _, dir := range v.having(writes) {
		for _, path := range held {
			if _, err := os.Lstat(path); err != nil || !below(path, dir) {
				continue
			}
			for at := filepath.Dir(path); below(at, dir) && at != dir; at = filepath.Dir(at) {
				if !slices.ContainsFunc(all, func(p place) bool { return p.path == at }) && !slices.ContainsFunc(held, func(r string) bool { return below(at, r) }) {
					all = append(all, place{at, writes, at})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b place) int { return cmp.Compare(a.path, b.path) })
	return all
}

// programs are the folders of programs and libraries. On many systems some are symbolic links.
var programs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"}

// settings are the parts of /etc that programs need, as patterns. None contains a secret.
var settings = []string{
	"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "passwd", "group", "nsswitch.conf", "hosts", "host.conf", "services", "protocols",
	"ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "pki/ca-trust/extracted", "ca-certificates", "ca-certificates.conf", "crypto-policies", "alternatives", "localtime", "timezone", "os-release", "debian_version",
	"mime.types", "magic", "bash.bashrc", "bashrc", "profile", "profile.d", "inputrc", "shells", "gitconfig", "fonts", "java*", "python*", "perl", "R", "php",
}

// system are files of the kernel from which programs read the properties of the machine.
var system = []string{"/proc", "/sys/devices/system", "/sys/kernel/mm/transparent_hugepage", "/sys/fs/cgroup"}

// machine are the parts of /proc that configure the whole machine.
var machine = []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"}

// mostCopied bounds the bytes of a file that is copied for each command.
const mostCopied = 128 << 10

// devices are the harmless files of /dev.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// etc returns the parts of /etc that existed at its first call.
var etc = sync.OnceValue(func() (all []string) {
	for _, pattern := range settings {
		found, _ := filepath.Glob(filepath.Join("/etc", pattern)) // fails only for a bad pattern
		all = append(all, found...)
	}
	return all
})

// readable returns the paths of the system that every command may read at level Confined.
func readable() []string { return slices.Concat(etc(), programs, system) }

// tree returns options of bubblewrap for the file system of every command. Files of /etc are copied into memory from descriptors
// beginning with fd, those of copied: for each mount bubblewrap reads the list of all mounts, which would take longer.
func tree(fd int) (options, copied []string) {
	for _, path := range programs {
		if target, err := os.Readlink(path); err == nil {
			options = append(options, "--symlink", target, path)
		} else {
			options = append(options, "--ro-bind-try", path, path)
		}
	}
	for _, path := range etc() {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() <= mostCopied {
			options = append(options, "--perms", "0644", "--file", strconv.Itoa(fd+len(copied)), path)
			copied = append(copied, path)
		} else {
			options = append(options, "--ro-bind-try", path, path)
		}
	}
	options = append(options, "--proc", "/proc", "--dev", "/dev")
	for _, path := range machine { // root could write them, though without any capability
		options = append(options, "--ro-bind-try", path, path)
	}
	return options, copied
}
