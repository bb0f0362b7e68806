// Package stricttest makes a rehearsal endpoint as strict as the endpoints of one vendor, so that tests can check the
// requests of package model to each of them. The table in endpoints.go lists the refusals of each, from public reports;
// package rehearsal plays the script.
package stricttest
