# result: {"monthly": {"2024-01-01": 465, "2024-02-01": 1305, "2024-03-01": 2235}, "rolling": [3.0, 86.0], "shifted": 1.0, "weekday": 598, "slice": 29, "utc": "2023-12-31T23:00:00+00:00"}
# image: data
import pandas as pd


async def main():
    index = pd.date_range("2024-01-01", periods=90, freq="D", tz="Europe/Berlin")
    series = pd.Series(range(90), index=index)
    monthly = series.resample("MS").sum()
    rolling = series.rolling(7).mean().dropna()
    shifted = series.pct_change().iloc[2]
    return {
        "monthly": {str(k.date()): int(v) for k, v in monthly.items()},
        "rolling": [float(rolling.iloc[0]), float(rolling.iloc[-1])],
        "shifted": float(shifted),
        "weekday": int(series.groupby(series.index.day_name()).sum()["Friday"]),
        "slice": int(series.loc["2024-02"].count()),
        "utc": series.index.tz_convert("UTC")[0].isoformat(),
    }
