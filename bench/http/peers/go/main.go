// The bench's HTTP server, done the way Go does it: net/http, unencrypted HTTP/2, and the
// request's context. It prints its port. Paths as in bench/http/floor.c.
package main

import (
	"fmt"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const slowness = time.Minute

var begun, reset atomic.Uint64

func sayOK(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	w.Write([]byte("ok"))
}

func slow(w http.ResponseWriter, r *http.Request) {
	begun.Add(1)
	timer := time.NewTimer(slowness)
	defer timer.Stop()
	select {
	case <-timer.C:
		sayOK(w, r)
	case <-r.Context().Done():
		reset.Add(1)
	}
}

func sayCount(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "%d %d\n", begun.Load(), reset.Load())
}

func main() {
	http.HandleFunc("GET /{$}", sayOK)
	http.HandleFunc("GET /slow", slow)
	http.HandleFunc("GET /count", sayCount)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := http.Server{Protocols: new(http.Protocols)}
	server.Protocols.SetUnencryptedHTTP2(true)
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(server.Serve(listener))
}
