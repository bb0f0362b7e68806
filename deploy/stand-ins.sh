#!/usr/bin/env bash
# Makes stand-ins for the images that are pulled from registries: the bases of
# deploy/Dockerfile, NATS and Prometheus. It is for machines that have an engine but
# reach no registry, such as CI; the same Dockerfile and docker-compose.yml are then
# built and started as everywhere else.
#
# The bases are made from the packages installed on this machine (Debian 12 or a
# close relative), the Go image with what go.mod needs as a module proxy of its own,
# NATS from its Go module, Prometheus and busybox from Debian's packages. Grafana has
# none. An image that was pulled is left alone; a stand-in is replaced when what it
# is made from has changed.
#
#   deploy/stand-ins.sh            make them
#   deploy/stand-ins.sh --remove   take them away, so that the real ones are pulled
set -euo pipefail
umask 022
cd "$(dirname "${BASH_SOURCE[0]}")/.."

base_of() { sed -n "s/^ARG $1=//p" deploy/Dockerfile; }
image_of() { sed -n "s,^ *image: \($1:.*\),\1,p" docker-compose.yml; }

# mark_of IMAGE prints what marks a stand-in, nothing for a real image, and fails if
# there is none of that name.
mark_of() { docker image inspect --format '{{with .Config.Labels}}{{with index . "agentteam.stand-in"}}{{.}}{{end}}{{end}}' "$1" 2>/dev/null; }

case $* in
'') ;;
--remove)
	for image in "$(base_of GO_IMAGE)" "$(base_of TEAMMATE_BASE)" "$(image_of nats)" "$(image_of prom/prometheus)"; do
		mark=$(mark_of "$image") || continue
		if [[ -n $mark ]]; then
			docker image rm "$image" >/dev/null
			echo "$image: the stand-in is removed"
		else
			echo "$image: the image itself is here"
		fi
	done
	exit
	;;
*)
	echo "usage: deploy/stand-ins.sh [--remove]" >&2
	exit 2
	;;
esac

tmp=$(mktemp -d)
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT

# wanted IMAGE WHAT... says whether a stand-in is to be made, WHAT being all that it
# depends on beside this script; key is then the label for it.
wanted() {
	local image=$1 have
	shift
	key=$({ cat deploy/stand-ins.sh && printf '%s\n' "$@"; } | sha256sum | cut -c -16)
	have=$(mark_of "$image") || have=none
	case $have in
	"$key") echo "$image: the stand-in is up to date" ;;
	'') echo "$image: the image itself is here" ;;
	*)
		docker image rm --force "$image" &>/dev/null || true
		return 0
		;;
	esac
	return 1
}

# import IMAGE [CHANGE...] makes an image of the files in $tmp/image.tar.
import() {
	local image=$1 change changes=(--change "LABEL agentteam.stand-in=$key")
	shift
	for change; do changes+=(--change "$change"); done
	docker import "${changes[@]}" "$tmp/image.tar" "$image" >/dev/null
	rm "$tmp/image.tar"
	echo "$image: made a stand-in"
}

path='ENV PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

# packages: the essential ones, apt, what our images install, and all that
# these depend on.
packages() {
	# The second list drops what apt knows as a possible choice only.
	# shellcheck disable=SC2046 # names, one word each
	comm -12 <(apt-cache depends --recurse --installed --important \
		$(dpkg-query -W -f '${Essential} ${Package}\n' | sed -n 's/^yes //p') \
		apt bash ca-certificates coreutils findutils git grep mawk passwd sed | grep '^[a-z0-9]' | sort -u) \
		<(dpkg-query -W -f '${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p' | sort -u)
}

# debian lists the files of the packages, for tar, and writes those that belong to no
# package below $tmp/debian: among them a package database that knows no others.
debian() {
	local root=$tmp/debian names
	names=$(packages)
	mkdir -p "$root"/{var/lib/dpkg/{info,updates},var/lib/apt/lists/partial,var/cache/apt/archives/partial,var/log,etc/apt/{apt.conf,preferences,sources.list}.d,usr/bin,root}
	mkdir -m 1777 "$root"/{tmp,var/tmp} # those here change while they are read
	awk -v RS= -v ORS='\n\n' 'FNR == NR { for (i = 1; i <= NF; i++) want[$i]; next } $2 in want' \
		<(echo "$names") /var/lib/dpkg/status >"$root/var/lib/dpkg/status"
	: >"$root/etc/apt/sources.list"
	cp /usr/share/base-passwd/passwd.master "$root/etc/passwd"
	cp /usr/share/base-passwd/group.master "$root/etc/group"
	ln -s mawk "$root/usr/bin/awk"
	for name in $names; do
		for file in /var/lib/dpkg/info/"$name"{,:*}.*; do [[ ! -e $file ]] || cp "$file" "$root/var/lib/dpkg/info/"; done
	done
	{
		printf '%s\n' /bin /sbin /lib /lib64
		find /etc/ssl/certs
		# shellcheck disable=SC2086
		dpkg -L $names | grep '^/.' | grep -Ev '^/usr/share/(doc|man|info|locale|lintian)/|^/etc/apt/|^/(bin|sbin|lib|lib64|tmp|var/tmp)$' |
			# A package may name /bin/sh what is /usr/bin/sh since the two were merged.
			sed -E 's,^/(bin|sbin|lib|lib64)/,/usr/\1/,'
	} | sort -u >"$tmp/files"
	# A package lists what may have been removed here since, and the engine wants each
	# path once.
	while IFS= read -r file; do
		if [[ (-e $file || -L $file) && ! -e $root$file ]]; then echo ".$file"; fi
	done <"$tmp/files" >"$tmp/debian.files"
}

# tar_debian [ARG...] makes the base, with what tar is told to add, $tmp/image.tar.
tar_debian() {
	[[ -e $tmp/debian.files ]] || debian
	tar -cf "$tmp/image.tar" --numeric-owner -C / --no-recursion -T "$tmp/debian.files" --recursion -C "$tmp/debian" . "$@"
}

# tar_root DIR makes $tmp/image.tar of all that is below DIR.
tar_root() { tar -cf "$tmp/image.tar" --owner=0 --group=0 -C "$1" .; }

# unpack DIR PACKAGE... puts the files of Debian packages below DIR.
unpack() {
	local dir=$1 package
	shift
	mkdir -p "$tmp/deb" "$dir"
	for package; do
		(cd "$tmp/deb" && rm -f ./*.deb && apt-get -qq -o APT::Sandbox::User=root download "$package") || {
			echo "stand-ins: the package $package was not fetched; try apt-get update" >&2
			exit 1
		}
		dpkg -x "$tmp/deb"/*.deb "$dir"
	done
}

# applets DIR: busybox as shell and for health checks.
applets() {
	unpack "$1" busybox-static
	for name in sh cat ls wget; do ln -s busybox "$1/bin/$name"; done
}

image=$(base_of TEAMMATE_BASE)
if wanted "$image" "$(dpkg-query -W)"; then
	tar_debian
	import "$image" "$path" 'CMD ["bash"]'
fi

image=$(base_of GO_IMAGE)
if wanted "$image" "$(dpkg-query -W)" "$(go version)" "$(cat go.mod go.sum)"; then
	echo "fetching what go.mod needs"
	GOMODCACHE=$tmp/modules GOFLAGS=-modcacherw GOPROXY="file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)" go mod download
	goroot=$(go env GOROOT)
	tar_debian --exclude=testdata --exclude='*_test.go' \
		--transform "s,^${goroot#/}\(/\|$\),usr/local/go\1,S" --transform 's,^download,usr/local/go-proxy,S' \
		-C / "${goroot#/}" -C "$tmp/modules/cache" download
	import "$image" "$path" 'ENV GOPATH=/go GOTOOLCHAIN=local GOPROXY=file:///usr/local/go-proxy GOSUMDB=off' 'WORKDIR /go' 'CMD ["bash"]'
fi

image=$(image_of nats)
if wanted "$image" "$(go version)"; then
	root=$tmp/nats
	applets "$root"
	mkdir -p "$root"/{etc/nats,tmp,usr/local/bin}
	version=${image#nats:}
	CGO_ENABLED=0 GOFLAGS= GOBIN=$root/usr/local/bin \
		go install -trimpath -ldflags='-s -w' "github.com/nats-io/nats-server/v2@v${version%%-*}"
	tar_root "$root"
	import "$image" "$path" 'CMD ["nats-server", "--config", "/etc/nats/nats-server.conf"]'
fi

image=$(image_of prom/prometheus)
if wanted "$image"; then
	root=$tmp/prometheus
	applets "$root"
	unpack "$tmp/debs" prometheus
	cp "$tmp/debs/usr/bin/"{prometheus,promtool} "$root/bin/"
	ldd "$root/bin/prometheus" "$root/bin/promtool" | grep -o '/[^ ]*\.so[^ ]*' | sort -u |
		while IFS= read -r file; do cp --parents "$file" "$root"; done
	mkdir -p "$root"/{etc/prometheus,tmp,prometheus}
	echo 'nobody:x:65534:65534:nobody:/:/bin/false' >"$root/etc/passwd"
	chmod 777 "$root/prometheus"
	tar_root "$root"
	import "$image" "$path" 'USER nobody' 'WORKDIR /prometheus' 'ENTRYPOINT ["/bin/prometheus"]' \
		'CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]'
fi
