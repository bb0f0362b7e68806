package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
)

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
