// Command fakeapi serves an API that exists only as an OpenAPI document. It checks every request against
// the document and answers with values made from the response's schema, so that a client of the API can be
// tried without the API.
//
//	fakeapi [-listen ADDR] DOCUMENT
//
// When it is ready it prints "listening on http://ADDR" on stdout.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("fakeapi: ")
	listen := flag.String("listen", "127.0.0.1:7780", "listen on `ADDR`")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: fakeapi [-listen ADDR] DOCUMENT")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *listen, flag.Arg(0)); err != nil {
		log.Fatal(err)
	}
}

// serve answers until ctx ends.
func serve(ctx context.Context, addr, document string) error {
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	api, err := newAPI(text)
	if err != nil {
		return fmt.Errorf("%s: %w", document, err)
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: api, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	fmt.Printf("listening on http://%s\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
