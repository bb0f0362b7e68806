// Package stricttest makes a rehearsal endpoint as strict as the endpoints of one vendor, so
// that tests can check what package model sends each of them. The table in endpoints.go states
// what each refuses, by public reports; package rehearsal plays the script.
package stricttest
