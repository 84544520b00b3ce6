package toolstest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/tools"
)

// A call while the server is away is known not to have reached it, and once it is
// back the same tools work again, with nobody doing anything.
func testDownAndUp(t *testing.T, s *sourceRun) {
	if s.Stop == nil {
		t.Skip("the server cannot be stopped")
	}
	s.connect(t)
	echo := s.Echo("x")
	invoke := s.driver(t, echo.Name)
	if _, err := invoke(caller(t), echo.Args); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	var last error
	down := Await(stepLimit, func() bool {
		// The very first call may have left before the end was noticed.
		_, last = invoke(caller(t), echo.Args)
		var te *tools.Error
		return errors.As(last, &te) && te.Delivery == tools.NotDelivered
	})
	s.checkError(t, last)
	if !down {
		t.Errorf("calls to a server that is down end with %#v", last)
	}
	s.Start()
	up := Await(stepLimit, func() bool {
		_, last = invoke(caller(t), echo.Args)
		return last == nil
	})
	if !up {
		t.Fatalf("calls after the server came back end with %v", last)
	}
	if ch := s.discover(t); len(ch.Removed)+len(ch.Updated)+len(ch.Refused) > 0 {
		t.Errorf("the tools after it came back: %+v", ch)
	}
}

func testClose(t *testing.T, s *sourceRun) {
	s.connect(t)
	if _, err := s.call(t, s.Echo("x")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := s.Provider.Close(caller(t)); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	ended := make(chan struct{})
	echo := s.Echo("x")
	ctx, cancel := context.WithTimeout(caller(t), stepLimit/2)
	defer cancel()
	go func() {
		defer close(ended)
		_, _ = tools.Invoke(ctx, s.cat, echo.Name, echo.Args) // it may fail, and must end
	}()
	select {
	case <-ended:
	case <-time.After(stepLimit):
		t.Error("a call of a closed source does not end")
	}
}
