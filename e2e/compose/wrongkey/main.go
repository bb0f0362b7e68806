// Command wrongkey is a model endpoint that refuses every key and, as some real ones
// do, quotes it. The tests run it in a container beside the cluster.
package main

import (
	"encoding/json"
	"log"
	"net/http"
)

func main() {
	log.Fatal(http.ListenAndServe(":8000", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"message": "incorrect key: " + r.Header.Get("Authorization")}})
	})))
}
