// Package teamtest runs whole teams inside a test's process: a NATS server, a
// rehearsal endpoint that plays every agent from a script, and as many leader and
// teammate processes as asked for, each the very Run of its program.
//
// What needs real processes, such as a kill, is tested with the built binaries
// elsewhere.
package teamtest
