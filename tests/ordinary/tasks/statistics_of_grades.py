# result: {"mean": 81.4, "median": 85.0, "mode": 85, "stdev": 12.366622, "quartiles": [70.5, 85.0, 91.0], "correlation": 0.987103, "slope": 4.574103, "intercept": 50.75351, "p95": 101.7413}
import statistics as st


async def main():
    grades = [72, 85, 90, 66, 85, 94, 78, 85, 60, 99]
    hours = [5, 8, 9, 3, 7, 9, 6, 8, 2, 10]
    slope, intercept = st.linear_regression(hours, grades)
    return {
        "mean": st.mean(grades),
        "median": st.median(grades),
        "mode": st.mode(grades),
        "stdev": round(st.stdev(grades), 6),
        "quartiles": st.quantiles(grades, n=4),
        "correlation": round(st.correlation(hours, grades), 6),
        "slope": round(slope, 6),
        "intercept": round(intercept, 6),
        "p95": round(st.NormalDist.from_samples(grades).inv_cdf(0.95), 4),
    }
