// Command passthrough hands requests to an upstream and its answers back, with
// no policy of any kind. It is the floor that gateways are compared with: over
// net/http by default, or by copying bytes between two TCP connections.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"time"
)

func main() {
	to := flag.String("to", "", "origin of the upstream, http://host:port")
	raw := flag.Bool("raw", false, "copy bytes between TCP connections")
	flag.Parse()
	origin, err := url.Parse(*to)
	if err != nil || origin.Host == "" {
		log.Fatalf("-to must be http://host:port, not %q", *to)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on http://%s\n", ln.Addr())
	if *raw {
		log.Fatal(copyBytes(ln, origin.Host))
	}
	log.Fatal(http.Serve(ln, &relay{origin: origin, transport: &http.Transport{
		MaxIdleConnsPerHost: 256, IdleConnTimeout: time.Minute, DisableCompression: true,
	}}))
}

// relay sends each request on and copies the answer.
type relay struct {
	origin    *url.URL
	transport *http.Transport
}

func (p *relay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The transport may still look for the end of the body when the answer
	// begins; without this the server has closed the body by then, and the
	// answer is cut off.
	_ = http.NewResponseController(w).EnableFullDuplex()
	out := r.WithContext(r.Context())
	u := *r.URL
	u.Scheme, u.Host = p.origin.Scheme, p.origin.Host
	out.URL, out.Host, out.RequestURI = &u, p.origin.Host, ""
	resp, err := p.transport.RoundTrip(out)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	h := w.Header()
	for k, v := range resp.Header {
		h[k] = v
	}
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, resp.Body)
}

// copyBytes joins every connection to one of its own to the upstream.
func copyBytes(ln net.Listener, host string) error {
	for {
		in, err := ln.Accept()
		if err != nil {
			return err
		}
		go join(in, host)
	}
}

func join(in net.Conn, host string) {
	defer in.Close()
	out, err := net.Dial("tcp", host)
	if err != nil {
		return
	}
	defer out.Close()
	go func() {
		defer out.Close()
		_, _ = io.Copy(out, in)
	}()
	_, _ = io.Copy(in, out)
}
