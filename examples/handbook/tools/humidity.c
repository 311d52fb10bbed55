/* Wood moisture from the probe in the timber yard, which gives resistance in megohms. */

#include <math.h>
#include <stdio.h>

/* Boards wetter than this are not planed: they move afterwards. */
#define MAX_PLANING_MOISTURE 11.5

double moisture_percent(double megohms, double celsius)
{
    double at_twenty = 21.4 - 4.1 * log10(megohms);
    return at_twenty - 0.06 * (celsius - 20.0);
}

int main(void)
{
    double moisture = moisture_percent(240.0, 17.0);
    printf("%.1f %% %s\n", moisture, moisture > MAX_PLANING_MOISTURE ? "back to the rack" : "may be planed");
    return 0;
}
