// Command kilnwatch reads the drying kilns every minute and calls the gatekeeper when one runs away.
package main

import (
	"fmt"
	"time"
)

// MaxSilence is how long a kiln may send nothing before somebody has to walk over and look.
const MaxSilence = 15 * time.Minute

// Reading is one line of a kiln's log.
type Reading struct {
	Kiln        int
	At          time.Time
	Celsius     float64
	HumidityPct float64
}

// Alarm says what is wrong with a kiln, or nothing.
func Alarm(last Reading, now time.Time, limit float64) string {
	switch {
	case now.Sub(last.At) > MaxSilence:
		return fmt.Sprintf("kiln %d has been silent since %s", last.Kiln, last.At.Format("15:04"))
	case last.Celsius > limit:
		return fmt.Sprintf("kiln %d is at %.1f degrees, the limit is %.1f", last.Kiln, last.Celsius, limit)
	}
	return ""
}

func main() {
	reading := Reading{Kiln: 2, At: time.Now().Add(-20 * time.Minute), Celsius: 61.5, HumidityPct: 34}
	fmt.Println(Alarm(reading, time.Now(), 68))
}
