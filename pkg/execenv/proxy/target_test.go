package proxy_test

import (
	"net/netip"
	"strings"
	"testing"

	"agentteam/pkg/execenv/proxy"
	"agentteam/pkg/team"
)

// What a list of hosts refuses: whatever is not exactly a listed name and a port of the web. No
// refused name is looked up, and nothing is dialled.
func TestList(t *testing.T) {
	t.Parallel()
	r := start(t, team.Network{"a.org", "*.b.org"})
	r.name("a.org", "93.184.215.14")
	r.name("x.b.org", "93.184.215.14")
	r.name("x.y.b.org", "93.184.215.14")
	ok := page(t, nil)
	r.serve("93.184.215.14:80", ok)
	r.serve("93.184.215.14:443", ok)
	for target, want := range map[string]string{
		"a.org:443": "", "A.oRg:443": "", "a.org.:443": "", "a.org:80": "", "x.b.org:443": "", "x.y.b.org:443": "",

		"b.org:443": "allowed are a.org, *.b.org; a person can add it", "evila.org:443": "allowed are", "a.org.evil.com:443": "allowed are", "xb.org:443": "allowed are",
		"a.org:22": "ports 80 and 443 are allowed; a person can set", "a.org:8080": "ports 80 and 443", "a.org:0": "no port", "a.org:65536": "no port", "a.org:0443": "no port", "a.org:+443": "Bad Request", "a.org:https": "Bad Request", "evil.com\x00.b.org:443": "Bad Request", "evil.com%00.b.org:443": "Bad Request", "evil.com\x01.b.org:443": "Bad Request", "evil.com\t.b.org:443": "Bad Request", "a.org:443\x00": "Bad Request",
		"a.org..:443": "not the name", ".a.org:443": "not the name", "*.b.org:443": "not the name", "x..b.org:443": "not the name", "-.b.org:443": "not the name",
		"a_b.b.org:443": "not the name", "\u212aa.b.org:443": "not the name", "ａ.org:443": "not the name", "a。org:443": "not the name", "ẞ.b.org:443": "not the name", "х.b.org:443": "not the name",
		"93.184.215.14:443": "it is an address", "[2606:2800::1]:443": "it is an address", "localhost:443": "not the name", "full:443": "not the name",
		strings.Repeat("a.", 130) + "b.org:443": "not the name",
		"a.org":                                 "HOST:PORT", "a.org:443/x": "HOST:PORT", "u@a.org:443": "HOST:PORT", "a.org:443:443": "Bad Request",
	} {
		status, text := r.raw("CONNECT " + target + " HTTP/1.1\r\nHost: a.org:443\r\n\r\n")
		if want == "" && status != 200 || want != "" && (!strings.Contains(text, want) || status != 403 && status != 400) {
			t.Errorf("%s: %d %s, want %s", target, status, text, want)
		}
	}
	looked, dialled := r.seen()
	if len(looked) != 6 || len(dialled) != 6 {
		t.Errorf("looked up %q, dialled %q", looked, dialled)
	}
	for _, name := range looked {
		if name != "a.org." && !strings.HasSuffix(name, ".b.org.") {
			t.Errorf("looked up %q", name)
		}
	}
}

// notations are ways to write an address that is not public, or not plainly.
var notations = []string{
	"127.0.0.1", "0.0.0.0", "10.1.2.3", "100.64.0.1", "100.100.100.200", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.168.1.1",
	"192.88.99.1", "198.18.0.1", "192.0.2.1", "198.51.100.1", "203.0.113.1", "224.0.0.251", "239.255.255.250", "240.0.0.1", "255.255.255.255", "168.63.129.16",
	"2130706433", "0x7f000001", "017700000001", "127.1", "127.0.1", "0x7f.0.0.1", "0x7f.1", "0177.0.0.1", "127.0.0.01", "127.0.0.1.", "8.8.8.8.", "2852039166", "0xa9fea9fe", "1", "0", "0x", "0x8080808", "8.8.8.08", "8.8.2056",
	"[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:8.8.8.8]", "[::127.0.0.1]", "[::8.8.8.8]", "[64:ff9b::7f00:1]", "[64:ff9b:1::1]", "[2002:7f00:1::]", "[2002:a9fe:a9fe::1]",
	"[2001::1]", "[2001:20::1]", "[2001:db8::1]", "[3fff::1]", "[5f00::1]", "[fc00::1]", "[fd00:ec2::254]", "[fe80::1]", "[fe80::1%25eth0]", "[2606:4700::1%25eth0]", "[fec0::1]", "[ff02::1]", "[100::1]", "[0:0:0:0:0:0:0:1]",
	"127。0。0。1", "①②⑦.⓪.⓪.①", "localhost", "ip6-localhost", "metadata",
}

// No notation of an address that is not public passes, whatever is set.
func TestNotations(t *testing.T) {
	t.Parallel()
	r := start(t, team.Network{team.FullNetwork})
	for _, host := range notations {
		for _, request := range []string{"CONNECT " + host + ":80 HTTP/1.1\r\nHost: x\r\n\r\n", "GET http://" + host + "/ HTTP/1.1\r\nHost: a.org\r\n\r\n"} {
			if status, text := r.raw(request); status != 403 && status != 400 {
				t.Errorf("%.40q: %d %s", request, status, text)
			}
		}
	}
	if looked, dialled := r.seen(); len(looked)+len(dialled) > 0 {
		t.Errorf("looked up %q, dialled %q", looked, dialled)
	}
}

// Every public host and port is reached if the network is full, by its address too; a name whose
// address is not public is not, however that is written in its record.
func TestFull(t *testing.T) {
	t.Parallel()
	var never netip.AddrPort
	r := start(t, team.Network{team.FullNetwork}, func(o *proxy.Options) { o.Never = func(at netip.AddrPort) bool { return at == never } })
	never = netip.MustParseAddrPort("93.184.215.14:4222")
	ok := page(t, nil)
	for _, at := range []string{"93.184.215.14:22", "93.184.215.14:4222", "93.184.215.14:443", "[2606:2800::1]:443", "127.0.0.1:443"} {
		r.serve(at, ok)
	}
	r.name("a.org", "93.184.215.14")
	r.name("six.org", "2606:2800::1")
	r.name("both.org", "10.0.0.1", "127.0.0.1", "::1", "fd00:ec2::254", "93.184.215.14")
	r.name("mapped.org", "::ffff:93.184.215.14")
	inside := map[string]bool{"mapped-loopback.org": true}
	r.name("mapped-loopback.org", "::ffff:127.0.0.1")
	for i, literal := range notations {
		if a, err := netip.ParseAddr(strings.Trim(literal, "[]")); err == nil && a.Unmap().String() != "8.8.8.8" {
			name := "n" + string(rune('a'+i/26)) + string(rune('a'+i%26)) + ".org"
			r.name(name, a.String())
			inside[name] = true
		}
	}
	if len(inside) < 40 {
		t.Fatalf("%d names", len(inside))
	}
	for name := range inside {
		if status, text := r.raw("CONNECT " + name + ":443 HTTP/1.1\r\n\r\n"); status != 403 || !strings.Contains(text, "no public address") {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if _, dialled := r.seen(); len(dialled) > 0 {
		t.Errorf("dialled %q", dialled)
	}
	for target, want := range map[string]int{
		"a.org:22": 200, "a.org:443": 200, "93.184.215.14:22": 200, "[2606:2800::1]:443": 200, "six.org:443": 200, "both.org:443": 200, "mapped.org:443": 200,
		"a.org:4222": 403, "93.184.215.14:4222": 403, "none.org:443": 502, "a.org:9": 502,
	} {
		if status, text := r.raw("CONNECT " + target + " HTTP/1.1\r\n\r\n"); status != want || strings.Contains(text, "10.0.0.2") {
			t.Errorf("%s: %d %s, want %d", target, status, text, want)
		}
	}
	_, dialled := r.seen()
	for _, at := range dialled {
		if a := netip.MustParseAddrPort(at); a.Addr().IsPrivate() || a.Addr().IsLoopback() {
			t.Errorf("dialled %s", at)
		}
	}
}

// A public address that is this machine's is refused: what listens on all addresses is behind it.
func TestOwnAddress(t *testing.T) {
	t.Parallel()
	r := start(t, team.Network{team.FullNetwork}, func(o *proxy.Options) { proxy.SetMachine(o, netip.MustParseAddr("93.184.215.14")) })
	r.name("a.org", "93.184.215.14")
	for _, target := range []string{"a.org:443", "93.184.215.14:443"} {
		if status, text := r.raw("CONNECT " + target + " HTTP/1.1\r\n\r\n"); status != 403 || !strings.Contains(text, "no public address") {
			t.Errorf("%s: %d %s", target, status, text)
		}
	}
}

// Without a host everything is refused.
func TestNoNetwork(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	for _, target := range []string{"a.org:443", "93.184.215.14:443"} {
		if status, text := r.raw("CONNECT " + target + " HTTP/1.1\r\n\r\n"); status != 403 || !strings.Contains(text, `no host is allowed; a person can name it in "network"`) {
			t.Errorf("%s: %d %s", target, status, text)
		}
	}
}

// Nothing is allowed that is not listed, whatever a program sends.
func FuzzHost(f *testing.F) {
	for _, host := range append(notations, "a.org", "x.b.org", "A.ORG.", "evil.example\x00.b.org", "b.org", "x.b.org:22", "a.org#b.org", "a.org/b.org", "x@a.org", "%61.org", "a.org%00.b.org") {
		f.Add(host, "443")
	}
	network := team.Network{"a.org", "*.b.org"}
	f.Fuzz(func(t *testing.T, host, port string) {
		at, err := proxy.Check(network, host, port)
		if err != nil {
			if strings.ContainsFunc(err.Error(), func(c rune) bool { return c < ' ' || c > '~' }) || len(err.Error()) > 1000 {
				t.Fatalf("%q is no line", err)
			}
		} else if name, found := strings.CutSuffix(at, ":"+port); !found || port != "80" && port != "443" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" ||
			name != "a.org" && !strings.HasSuffix(name, ".b.org") || !strings.EqualFold(strings.TrimSuffix(host, "."), name) || strings.Contains(name, "..") {
			t.Fatalf("%q %q is let through as %q", host, port, at)
		}
		at, err = proxy.Check(team.Network{team.FullNetwork}, host, port)
		if a, perr := netip.ParseAddrPort(at); err == nil && perr == nil && (a.Addr().String() != netip.MustParseAddr(host).String() || a.Addr().IsPrivate() || !a.Addr().IsGlobalUnicast()) {
			t.Fatalf("%q %q is let through as %q", host, port, at)
		}
	})
}
